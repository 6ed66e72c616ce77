import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Sends a custody platform's outbox to the service until it is stopped. With the argument `reconcile` it compares what both have
 * instead. Needs Java 17 and the driver of Postgres: java -cp postgresql.jar Feed.java
 */
public class Feed {
    /** Follows no redirect, which would take the token elsewhere. */
    static final HttpClient HTTP = HttpClient.newHttpClient();

    public static void main(String[] arguments) throws SQLException, IOException, InterruptedException {
        try (Connection db = DriverManager.getConnection(System.getenv("DATABASE"))) {
            if (List.of(arguments).contains("reconcile")) System.exit(reconcile(db) ? 0 : 1);
            follow(db);
        }
    }

    static void follow(Connection db) throws SQLException, InterruptedException {
        var next = db.prepareStatement("SELECT batch, history, records FROM custody_next_batch()");
        var sent = db.prepareStatement("UPDATE custody_outbox SET sent_at = now() WHERE batch = ?::uuid");
        while (true) {
            try (ResultSet found = next.executeQuery()) {
                if (!found.next()) {
                    Thread.sleep(1_000);
                    continue;
                }
                String batch = found.getString("batch");
                System.out.println(batch + " " + send(batch, found.getBoolean("history"), found.getString("records")));
                sent.setString(1, batch);
                sent.executeUpdate();
            }
        }
    }

    /** Posts a batch until it is answered. It has the same records and key each time, so it is applied once. */
    static String send(String batch, boolean history, String records) throws InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("PLATFORM") + "/platform/v1/records"))
            .header("Authorization", "Bearer " + System.getenv("PLATFORM_TOKEN"))
            .header("Content-Type", "application/x-ndjson")
            .header("Idempotency-Key", batch)
            .POST(HttpRequest.BodyPublishers.ofString(records));
        if (history) request.header("X-Record-Events", "none");
        while (true) {
            long wait = 1;
            try {
                HttpResponse<String> response = exchange(request.build(), 60);
                int status = response.statusCode();
                String answer = response.body();
                // Anything else with 200 is the page of a gateway.
                if (status == 200 && answer.startsWith("{\"received\":" + records.lines().count() + ",")) return answer;
                if (status >= 300 && status < 500 && status != 409 && status != 429) {
                    System.err.println("batch " + batch + " was refused: " + status + " " + answer);
                    System.exit(1);
                }
                String after = response.headers().firstValue("Retry-After").orElse("");
                if (after.matches("\\d{1,9}")) wait = Math.min(Long.parseLong(after), 60);
                System.err.println("batch " + batch + " is sent again: " + status + " " + answer.lines().findFirst().orElse(""));
            } catch (IOException noAnswer) {
                // The batch may or may not have been applied.
                System.err.println("batch " + batch + " is sent again: " + noAnswer);
            }
            Thread.sleep(wait * 1_000);
        }
    }

    /** A response whose body ends in so many seconds: the timeout of HttpRequest ends with the headers. */
    static HttpResponse<String> exchange(HttpRequest request, int seconds) throws IOException, InterruptedException {
        var response = HTTP.sendAsync(request, BodyHandlers.ofString());
        try {
            return response.get(seconds, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException noAnswer) {
            response.cancel(true);
            throw new IOException(noAnswer);
        }
    }

    static boolean reconcile(Connection db) throws SQLException, IOException, InterruptedException {
        boolean equal = true;
        var compare = db.prepareStatement("SELECT * FROM custody_reconcile(?, ?)");
        ResultSet vaults = db.createStatement()
            .executeQuery("SELECT DISTINCT record->>'id' AS id FROM custody_outbox WHERE record->>'type' = 'vault'");
        while (vaults.next()) {
            var export = HttpRequest.newBuilder(
                    URI.create(System.getenv("CUSTODY_URL") + "/v1/vaults/" + vaults.getString("id") + "/transactions/export?format=ndjson"))
                .header("Authorization", "Bearer " + System.getenv("CUSTODY_API_KEY"))
                .build();
            HttpResponse<String> response = exchange(export, 1_800);
            if (response.statusCode() != 200) throw new IOException("The export answered " + response.statusCode());
            compare.setString(1, vaults.getString("id"));
            compare.setString(2, response.body());
            try (ResultSet compared = compare.executeQuery()) {
                compared.next();
                System.out.printf(
                    "%s %d %d %s%n",
                    vaults.getString("id"), compared.getLong("ours"), compared.getLong("theirs"), compared.getString("differences"));
                equal &= compared.getString("our_hash").equals(compared.getString("their_hash"));
            }
        }
        return equal;
    }
}
