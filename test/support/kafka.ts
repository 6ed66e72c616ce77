/** A Kafka broker of one node from its jars, and its topics. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka"
import { Effect } from "effect"
import { freePort } from "./freePort.ts"
import { maven, run } from "./languages.ts"
import { until } from "./receiver.ts"

/** The broker's jars, which include those of Java's client; or the reason why there are none. */
export const kafka = await maven(
  "org.apache.kafka",
  "kafka_2.13",
  "4.3.1",
  "79f0a655f64f26618659b9cefe75b817c508c6225c84c643bf90d30c977d6483"
)

/** A message with its reason, where it was refused. */
export interface Refused {
  readonly value: string | undefined
  readonly reason: string | undefined
}

export class Kafka {
  readonly #folder = fs.mkdtempSync(path.join(os.tmpdir(), "custody-kafka-"))
  #child: Bun.Subprocess | undefined
  #admin: Admin | undefined
  #producer: Producer<string, string, string, string> | undefined
  address = ""

  async start(): Promise<void> {
    const [port, controller] = [await Effect.runPromise(freePort), await Effect.runPromise(freePort)]
    this.address = `127.0.0.1:${port}`
    const settings = path.join(this.#folder, "server.properties")
    fs.writeFileSync(
      settings,
      `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controller}
listeners=PLAINTEXT://${this.address},CONTROLLER://127.0.0.1:${controller}
controller.listener.names=CONTROLLER
log.dirs=${path.join(this.#folder, "data")}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
`
    )
    const java = (main: string, ...args: ReadonlyArray<string>) => [
      "java",
      "-Xmx256m",
      "-XX:TieredStopAtLevel=1",
      "-cp",
      `${kafka.jars}/*`,
      main,
      ...args
    ]
    await run(java("kafka.tools.StorageTool", "format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA", "--config", settings))
    const child = Bun.spawn(java("kafka.Kafka", settings), { cwd: this.#folder, stdio: ["ignore", "ignore", "ignore"] })
    this.#child = child
    const client = { clientId: "test", bootstrapBrokers: [this.address], retries: 0 }
    const admin = new Admin(client)
    this.#admin = admin
    await until("Kafka", async () => {
      if (child.exitCode !== null) throw new Error(`Kafka ended with ${child.exitCode}`)
      return admin.listTopics().then(
        () => true,
        () => false
      )
    })
    this.#producer = new Producer({ ...client, serializers: stringSerializers })
  }

  async stop(): Promise<void> {
    await this.#producer?.close(true)
    await this.#admin?.close()
    this.#child?.kill("SIGKILL")
    await this.#child?.exited
    fs.rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Creates a topic. The broker serves its partitions a moment after it has answered. */
  async create(topic: string, partitions: number): Promise<void> {
    const admin = this.#admin
    await admin?.createTopics({ topics: [topic], partitions, replicas: 1 })
    const asked = Array.from({ length: partitions }, (_, partitionIndex) => ({ partitionIndex, timestamp: -1n }))
    await until(`the topic ${topic}`, () =>
      admin?.listOffsets({ topics: [{ name: topic, partitions: asked }] }).then(
        () => true,
        () => false
      )
    )
  }

  delete(topic: string) {
    return this.#admin?.deleteTopics({ topics: [topic] })
  }

  /** Appends messages with these values to a partition. */
  send(topic: string, partition: number, values: ReadonlyArray<string | undefined>) {
    const messages = values.map((value) => ({ topic, partition, key: topic, ...(value === undefined ? {} : { value }) }))
    return this.#producer?.send({ messages })
  }

  /** The committed offset of each partition of a topic, with its metadata. */
  async committed(group: string, topic: string): Promise<ReadonlyMap<number, { readonly offset: bigint; readonly metadata: string }>> {
    const groups = (await this.#admin?.listConsumerGroupOffsets({ groups: [group] })) ?? []
    const partitions = groups.flatMap(({ topics }) => topics).flatMap(({ name, partitions }) => (name === topic ? partitions : []))
    return new Map(
      partitions.map(({ committedOffset, metadata, partitionIndex }) => [
        partitionIndex,
        { offset: committedOffset, metadata: metadata ?? "" }
      ])
    )
  }

  /** The messages of a topic of refused ones, which has one partition, once there are so many. */
  async refused(topic: string, count: number): Promise<ReadonlyArray<Refused>> {
    const consumer = new Consumer({
      clientId: "test",
      bootstrapBrokers: [this.address],
      groupId: `test-${topic}`,
      deserializers: stringDeserializers
    })
    const found: Array<Refused> = []
    for await (const { headers, value } of await consumer.consume({ topics: [topic], mode: "earliest", autocommit: false })) {
      found.push({ value, reason: headers.get("reason") })
      if (found.length === count) break
    }
    await consumer.close(true)
    return found
  }
}
