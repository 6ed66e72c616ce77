import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Sends the custody records of a Kafka topic to the service until it is stopped. Needs Java 17 and kafka-clients with its
 * dependencies: java -cp 'jars/*' KafkaFeed.java
 */
public class KafkaFeed implements ConsumerRebalanceListener {
    static final int MOST = 500;
    static final String TOPIC = System.getenv("TOPIC");
    /** In the answer to a batch that the service refuses because of its records. */
    static final Pattern INVALID = Pattern.compile("\"code\":\"(invalid_body|malformed_json|payload_too_large)\"");
    static final Pattern VISIBLE = Pattern.compile("[!-~]");
    /** Follows no redirect, which would take the token elsewhere. */
    static final HttpClient HTTP = HttpClient.newHttpClient();

    final KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
        Map.of(
            "bootstrap.servers", System.getenv("KAFKA"),
            "group.id", "custody-feed",
            "enable.auto.commit", "false",
            // Messages that expired before they were sent stop the program.
            "auto.offset.reset", "none",
            "isolation.level", "read_committed",
            "session.timeout.ms", "10000"),
        new ByteArrayDeserializer(), new ByteArrayDeserializer());
    final KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
        // The broker limits the size of refused messages.
        Map.of("bootstrap.servers", System.getenv("KAFKA"), "max.request.size", "1000000000"),
        new ByteArraySerializer(), new ByteArraySerializer());

    /** What was read of each partition and is not sent yet. */
    final Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> unsent = new HashMap<>();
    /** The offset at which a partition's current batch ends. The committed offset, where it starts, has both as metadata. */
    final Map<TopicPartition, Long> ends = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        new KafkaFeed().run();
    }

    void run() throws Exception {
        consumer.subscribe(List.of(TOPIC), this);
        while (true) {
            read(1);
            for (TopicPartition partition : Set.copyOf(unsent.keySet())) {
                try {
                    while (sendBatch(partition)) {}
                } catch (CommitFailedException | RebalanceInProgressException failed) {
                    // Another program may have the partition: the next read tells. If not, the batch is sent again.
                    System.err.println(partition + ": " + failed);
                }
            }
        }
    }

    void read(long seconds) {
        for (var message : consumer.poll(Duration.ofSeconds(seconds)))
            unsent.get(new TopicPartition(message.topic(), message.partition())).add(message);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        consumer.committed(Set.copyOf(partitions)).forEach((partition, committed) -> {
            unsent.put(partition, new ArrayList<>());
            if (committed == null) consumer.seekToBeginning(List.of(partition));
            else {
                // After a failover, another cluster has the metadata beside its own offset.
                String begun = committed.offset() + "-";
                if (committed.metadata().startsWith(begun)) ends.put(partition, Long.valueOf(committed.metadata().substring(begun.length())));
            }
        });
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        unsent.keySet().removeAll(partitions);
        ends.keySet().removeAll(partitions);
    }

    /** Commits where the current batch of a partition starts and ends before it is sent: whoever sends it again sends the same. */
    void begin(TopicPartition partition, long end) {
        long start = unsent.get(partition).get(0).offset();
        commit(partition, start, start + "-" + end);
        ends.put(partition, end);
    }

    void finish(TopicPartition partition, long end) {
        commit(partition, end, "");
        ends.remove(partition);
        unsent.get(partition).removeIf(message -> message.offset() < end);
    }

    void commit(TopicPartition partition, long offset, String metadata) {
        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset, metadata)));
    }

    /** Sends a partition's current batch once. Returns whether there is more to do. */
    boolean sendBatch(TopicPartition partition) throws Exception {
        var messages = unsent.getOrDefault(partition, List.of());
        if (messages.isEmpty()) return false;
        if (!ends.containsKey(partition)) begin(partition, messages.get(Math.min(MOST, messages.size()) - 1).offset() + 1);
        long end = ends.get(partition);
        // After a crash, the rest of the batch may still have to be read.
        if (messages.get(messages.size() - 1).offset() < end - 1) return false;
        var batch = messages.stream().filter(message -> message.offset() < end).toList();

        String key = partition + "-" + batch.get(0).offset() + "-" + end;
        int status = 0;
        long wait = 1;
        String answer;
        try {
            HttpResponse<String> response = exchange(request(key, batch));
            status = response.statusCode();
            answer = response.body();
            String after = response.headers().firstValue("Retry-After").orElse("");
            if (after.matches("\\d{1,9}")) wait = Math.min(Long.parseLong(after), 60);
        } catch (IOException noAnswer) {
            // The batch may or may not have been applied.
            answer = noAnswer.toString();
        }

        boolean invalid = (status == 400 || status == 413) && INVALID.matcher(answer).find();
        // Anything else with 200 is the page of a gateway.
        if (status == 200 && answer.startsWith("{\"received\":" + batch.size() + ",")) {
            System.out.println(key + " " + answer);
            finish(partition, end);
        } else if (invalid && batch.size() > 1) {
            // Nothing was applied: halves are sent until the invalid record is alone.
            begin(partition, batch.get(batch.size() / 2).offset());
        } else if (invalid) {
            setAside(batch.get(0), key + " was refused: " + answer);
            finish(partition, end);
        } else if (status < 300 || status >= 500 || status == 409 || status == 429) {
            System.err.println(key + " is sent again: " + status + " " + answer.lines().findFirst().orElse(""));
            // Reading nothing keeps the partitions meanwhile.
            consumer.pause(consumer.assignment());
            read(wait);
            consumer.resume(consumer.assignment());
        } else {
            throw new IllegalStateException(key + " was refused: " + status + " " + answer);
        }
        return true;
    }

    static HttpRequest request(String key, List<ConsumerRecord<byte[], byte[]>> batch) throws NoSuchAlgorithmException {
        var lines = new StringBuilder();
        for (var message : batch) {
            // This encoding keeps every byte.
            String value = message.value() == null ? "" : new String(message.value(), StandardCharsets.ISO_8859_1);
            // A record is one line: JSON has line breaks only between its tokens. The service skips blank lines, but refuses null.
            lines.append(VISIBLE.matcher(value).find() ? value.replace('\n', ' ') : "null").append('\n');
        }
        // A topic that is created again has the same offsets.
        byte[] digest = MessageDigest.getInstance("SHA-256").digest((key + "\n" + lines).getBytes(StandardCharsets.ISO_8859_1));
        return HttpRequest.newBuilder(URI.create(System.getenv("PLATFORM") + "/platform/v1/records"))
            .header("Authorization", "Bearer " + System.getenv("PLATFORM_TOKEN"))
            .header("Content-Type", "application/x-ndjson")
            .header("Idempotency-Key", HexFormat.of().formatHex(digest))
            .POST(BodyPublishers.ofString(lines.toString(), StandardCharsets.ISO_8859_1))
            .build();
    }

    /** A response whose body ends within a minute: the timeout of HttpRequest ends with the headers. */
    static HttpResponse<String> exchange(HttpRequest request) throws IOException, InterruptedException {
        var response = HTTP.sendAsync(request, BodyHandlers.ofString());
        try {
            return response.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException noAnswer) {
            response.cancel(true);
            throw new IOException(noAnswer);
        }
    }

    /** Keeps a refused message, with the start of the reason, in the topic of those. */
    void setAside(ConsumerRecord<byte[], byte[]> message, String reason) throws InterruptedException, ExecutionException {
        System.err.println(reason);
        var copy = new ProducerRecord<>(TOPIC + "-refused", null, message.key(), message.value(), message.headers());
        copy.headers().add("reason", reason.substring(0, Math.min(500, reason.length())).getBytes(StandardCharsets.UTF_8));
        producer.send(copy).get();
    }
}
