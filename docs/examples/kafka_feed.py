"""Sends the custody records of a Kafka topic to the service until it is stopped. Needs confluent-kafka."""

import hashlib
import os
import re
import sys
from http.client import HTTPException
from urllib.request import HTTPErrorProcessor, Request, build_opener

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
# The broker limits the size of refused messages.
producer = Producer({"bootstrap.servers": os.environ["KAFKA"], "message.max.bytes": 1_000_000_000})

# In the answer to a batch that the service refuses because of its records.
INVALID = re.compile('"code":"(invalid_body|malformed_json|payload_too_large)"')

# Errors of a commit while the programs of the group share the partitions out again.
MOVING = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID)

# What was read of each partition and is not sent yet.
unsent: dict[int, list[Message]] = {}
# The offset at which a partition's current batch ends. The committed offset, where it starts, has both as metadata.
ends: dict[int, int] = {}


class AnyStatus(HTTPErrorProcessor):
    """Returns every response as it is: no redirect is followed, which would take the token elsewhere."""

    def http_response(self, request, response):
        return response

    https_response = http_response


http = build_opener(AnyStatus)


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
        else:
            begun, _, end = (start.metadata or "").partition("-")
            # After a failover, another cluster has the metadata beside its own offset.
            if begun == str(start.offset):
                ends[start.partition] = int(end)
    consumer.assign(starts)


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    for gone in partitions:
        unsent.pop(gone.partition, None)
        ends.pop(gone.partition, None)


def begin(partition: int, end: int) -> None:
    """Commits where the current batch of a partition starts and ends before it is sent: whoever sends it again sends the same."""
    start = unsent[partition][0].offset()
    commit(TopicPartition(TOPIC, partition, start, metadata=f"{start}-{end}"))
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
    try:
        with http.open(request(key, batch), timeout=60) as response:
            status, answer = response.status, response.read().decode(errors="replace")
            after = response.headers.get("Retry-After", "")
    except (OSError, HTTPException) as error:
        # No answer: the batch may or may not have been applied.
        status, answer, after = 0, repr(error), ""

    invalid = status in (400, 413) and INVALID.search(answer) is not None
    # Anything else with 200 is the page of a gateway.
    if status == 200 and answer.startswith(f'{{"received":{len(batch)},'):
        print(key, answer, flush=True)
        finish(partition, end)
    elif invalid and len(batch) > 1:
        # Nothing was applied: halves are sent until the invalid record is alone.
        begin(partition, batch[len(batch) // 2].offset())
    elif invalid:
        set_aside(batch[0], f"{key} was refused: {answer}")
        finish(partition, end)
    elif status < 300 or status >= 500 or status in (409, 429):
        print(f"{key} is sent again: {status} {answer[:200]}", file=sys.stderr)
        # Reading nothing keeps the partitions meanwhile.
        consumer.pause(consumer.assignment())
        read(min(int(after), 60) if after.isdecimal() else 1)
        consumer.resume(consumer.assignment())
    else:
        raise SystemExit(f"{key} was refused: {status} {answer}")
    return True


def request(key: str, batch: list[Message]) -> Request:
    # A record is one line: JSON has line breaks only between its tokens. The service skips blank lines, but refuses null.
    values = [message.value() or b"" for message in batch]
    lines = [value.replace(b"\n", b" ") if re.search(rb"[!-~]", value) else b"null" for value in values]
    body = b"\n".join(lines)
    headers = {
        "Authorization": f"Bearer {os.environ['PLATFORM_TOKEN']}",
        "Content-Type": "application/x-ndjson",
        # A topic that is created again has the same offsets.
        "Idempotency-Key": hashlib.sha256(f"{key}\n".encode() + body).hexdigest(),
    }
    return Request(f"{os.environ['PLATFORM']}/platform/v1/records", body, headers)


def set_aside(message: Message, reason: str) -> None:
    """Keeps a refused message, with the start of the reason, in the topic of those."""
    print(reason, file=sys.stderr)
    headers = [*(message.headers() or []), ("reason", reason[:500].encode())]
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
