"""Sends the custody records of a Kafka topic to the service until it is stopped. Needs confluent-kafka."""

import os
import sys
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

MOST = 500
TOPIC = os.environ["TOPIC"]
consumer = Consumer({
    "bootstrap.servers": os.environ["KAFKA"],
    "group.id": "custody-feed",
    "enable.auto.commit": False,
    # Messages that expired before they were sent stop the program.
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "session.timeout.ms": 10_000,
})
producer = Producer({"bootstrap.servers": os.environ["KAFKA"]})

# Errors of a commit while the programs of the group share the partitions out again.
MOVING = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID)

# What was read of each partition and is not sent yet.
unsent: dict[int, list[Message]] = {}
# The offset at which a partition's current batch ends. The committed offset, where it starts, has it as metadata.
ends: dict[int, int] = {}


def read(seconds: int) -> None:
    for message in consumer.consume(MOST, seconds):
        if message.error() is not None:
            raise KafkaException(message.error())
        unsent[message.partition()].append(message)


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    starts = consumer.committed(partitions)
    for start in starts:
        unsent[start.partition] = []
        if start.offset < 0:
            start.offset = OFFSET_BEGINNING
        elif start.metadata:
            ends[start.partition] = int(start.metadata)
    consumer.assign(starts)


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    for gone in partitions:
        unsent.pop(gone.partition, None)
        ends.pop(gone.partition, None)


def begin(partition: int, end: int) -> None:
    """Commits where the current batch of a partition starts and ends before it is sent: whoever sends it again sends the same."""
    commit(TopicPartition(TOPIC, partition, unsent[partition][0].offset(), metadata=str(end)))
    ends[partition] = end


def finish(partition: int, end: int) -> None:
    commit(TopicPartition(TOPIC, partition, end))
    del ends[partition]
    unsent[partition] = [message for message in unsent[partition] if message.offset() >= end]


def commit(offset: TopicPartition) -> None:
    consumer.commit(offsets=[offset], asynchronous=False)


def send_batch(partition: int) -> bool:
    """Sends a partition's current batch once. Returns whether there is more to do."""
    messages = unsent.get(partition, [])
    if not messages:
        return False
    if partition not in ends:
        begin(partition, messages[:MOST][-1].offset() + 1)
    end = ends[partition]
    # After a crash, the rest of the batch may still have to be read.
    if messages[-1].offset() < end - 1:
        return False
    batch = [message for message in messages if message.offset() < end]

    key = f"{TOPIC}-{partition}-{batch[0].offset()}-{end}"
    status, wait = 0, 1
    try:
        with urlopen(request(key, batch), timeout=60) as response:
            status, answer = response.status, response.read().decode()
    except HTTPError as error:
        status, answer = error.code, error.read().decode()
        after = error.headers.get("Retry-After", "")
        wait = int(after) if after.isdecimal() else 1
    except (OSError, HTTPException) as error:
        # No answer: the batch may or may not have been applied.
        answer = repr(error)

    if status == 200:
        print(key, answer, flush=True)
        finish(partition, end)
    elif status in (400, 413) and len(batch) > 1:
        # Nothing was applied: halves are sent until the invalid record is alone.
        begin(partition, batch[len(batch) // 2].offset())
    elif status in (400, 413):
        set_aside(batch[0], f"{key} was refused: {answer}")
        finish(partition, end)
    elif status == 0 or status >= 500 or status in (409, 429):
        print(f"{key} is sent again: {status} {answer}", file=sys.stderr)
        # Reading nothing keeps the partitions meanwhile.
        consumer.pause(consumer.assignment())
        read(wait)
        consumer.resume(consumer.assignment())
    else:
        raise SystemExit(f"{key} was refused: {answer}")
    return True


def request(key: str, batch: list[Message]) -> Request:
    # A record is one line. JSON has line breaks only between its tokens.
    lines = [(b"null" if message.value() is None else message.value()).replace(b"\n", b" ") for message in batch]
    headers = {
        "Authorization": f"Bearer {os.environ['PLATFORM_TOKEN']}",
        "Content-Type": "application/x-ndjson",
        "Idempotency-Key": key,
    }
    return Request(f"{os.environ['PLATFORM']}/platform/v1/records", b"\n".join(lines), headers)


def set_aside(message: Message, reason: str) -> None:
    """Keeps a refused message, with the reason, in the topic of those."""
    print(reason, file=sys.stderr)
    headers = [*(message.headers() or []), ("reason", reason.encode())]
    failures = []
    producer.produce(f"{TOPIC}-refused", message.value(), message.key(), headers=headers, on_delivery=lambda error, _: failures.append(error))
    producer.flush()
    if failures != [None]:
        raise SystemExit(f"{TOPIC}-refused: {failures}")


consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked)
while True:
    read(1)
    for some in list(unsent):
        try:
            while send_batch(some):
                pass
        except KafkaException as failed:
            if failed.args[0].code() not in MOVING:
                raise
            # Another program may have the partition: the next read tells. If not, the batch is sent again.
            print(f"{TOPIC}-{some}: {failed}", file=sys.stderr)
