/** The programs of docs/examples that feed the service from a Kafka topic: killed, refused and restarted, two at a time. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import { useApp } from "../../support/app.ts"
import { Gateway } from "../../support/Gateway.ts"
import { Kafka, kafka } from "../../support/kafka.ts"
import { impatient, python } from "../../support/languages.ts"
import { refuseOne, untilOneWaits, whileLocked } from "../../support/lockedLedger.ts"
import { until } from "../../support/receiver.ts"
import { smallest, transaction, vault } from "../../support/records.ts"

const examples = path.resolve(import.meta.dir, "../../../docs/examples")
const PARTITIONS = [0, 1]
/** Transactions of each partition. */
const FIRST = 700,
  LATER = 1_500

const { interpreter, without } = await python(["confluent-kafka==2.16.1"])
const languages = [
  { name: "java", skipped: kafka.without || without, command: ["java", "-cp", `${kafka.jars}/*`, "KafkaFeed.java"] },
  { name: "python", skipped: kafka.without || without, command: [interpreter, "kafka_feed.py"] }
]

const app = useApp(["api"])
const broker = new Kafka()
const gateway = new Gateway(app)

describe.skipIf(kafka.without !== "")(`a feed from Kafka${kafka.without}`, () => {
  beforeAll(() => broker.start())
  afterAll(async () => {
    await gateway.stop()
    await broker.stop()
  })

  for (const [index, { command, name, skipped }] of languages.entries()) {
    describe.skipIf(skipped !== "")(`with the example in ${name}${skipped}`, () => {
      const topic = `records-${name}`
      const running = new Set<Bun.Subprocess<"ignore", "ignore", "pipe">>()
      const sent = new Map<number, number>()
      const number = (partition: number, n: number) => index * 1_000_000 + partition * 100_000 + n
      const vaultOf = (partition: number) => `vault_${name}_${partition}`
      const states = (partition: number, n: number) =>
        ["pending", "confirmed"].map((status) => JSON.stringify(transaction(vaultOf(partition), number(partition, n), { status })))

      const start = (cwd = examples, from = topic) => {
        const env = {
          ...process.env,
          KAFKA: broker.address,
          TOPIC: from,
          PLATFORM: gateway.url,
          PLATFORM_TOKEN: app.env["PLATFORM_TOKEN"]
        }
        const child = Bun.spawn([...command], { cwd, env, stdin: "ignore", stdout: "ignore", stderr: "pipe" })
        running.add(child)
        return child
      }
      const kill = async (count = running.size) => {
        const children = [...running].slice(0, count)
        for (const child of children) running.delete(child)
        for (const child of children) child.kill("SIGKILL")
        await Promise.all(children.map(({ exited }) => exited))
      }
      /** Kills so many after the service has applied a batch, before its answer arrives. */
      const killedAtAnswer = (count: number) =>
        new Promise<void>((resolve) => {
          gateway.onAnswer = async (status) => {
            if (status !== 200) return
            gateway.onAnswer = () => {}
            await kill(count)
            resolve()
          }
        })
      /** Commits once Kafka knows that nobody has the topic any more. */
      const commit = (topic: string, offset: number, metadata: string) =>
        until("the commit", async () => {
          const program = `import sys; from confluent_kafka import Consumer, TopicPartition
Consumer({"bootstrap.servers": sys.argv[1], "group.id": "custody-feed"}).commit(
    offsets=[TopicPartition(sys.argv[2], 0, int(sys.argv[3]), metadata=sys.argv[4])], asynchronous=False)`
          const args = [broker.address, topic, String(offset), metadata]
          return (await Bun.spawn([interpreter, "-c", program, ...args], { stderr: "ignore" }).exited) === 0
        })
      const send = async (partition: number, values: ReadonlyArray<string | undefined>) => {
        await broker.send(topic, partition, values)
        sent.set(partition, (sent.get(partition) ?? 0) + values.length)
      }
      const sentUpTo = (topic: string, offsets: ReadonlyMap<number, number>) =>
        until("everything is sent", async () => {
          for (const child of running) if (child.exitCode !== null) throw new Error(await new Response(child.stderr).text())
          const committed = await broker.committed("custody-feed", topic)
          return [...offsets].every(([partition, end]) => {
            const { metadata, offset } = committed.get(partition) ?? {}
            return metadata === "" && offset === BigInt(end)
          })
        })
      const allSent = () => sentUpTo(topic, sent)
      const events = () =>
        app.sql(
          `SELECT vault_id AS vault, kind, count(*)::int AS events, count(DISTINCT payload::json -> 'data' -> 'transaction' ->> 'hash')::int AS hashes
           FROM events WHERE vault_id = ANY($1) AND kind LIKE 'transaction.%' GROUP BY vault_id, kind ORDER BY vault_id, kind`,
          [PARTITIONS.map(vaultOf)]
        )
      const eachOnce = (transactions: number) =>
        PARTITIONS.flatMap((partition) =>
          ["transaction.confirmed", "transaction.pending"].map((kind) => ({
            vault: vaultOf(partition),
            kind,
            events: transactions,
            hashes: transactions
          }))
        )

      beforeAll(async () => {
        await broker.create(topic, PARTITIONS.length)
        await broker.create(`${topic}-refused`, 1)
        for (const partition of PARTITIONS) {
          await send(
            partition,
            [...smallest(), vault(vaultOf(partition), "entity_a")].map((record) => JSON.stringify(record))
          )
          for (let n = 0; n < FIRST; n++) await send(partition, states(partition, n))
        }
      })
      afterAll(() => kill())

      test("sends two partitions, killed in between: nothing is missing, nothing comes twice", async () => {
        await whileLocked(app, async () => {
          start()
          await untilOneWaits(app)
          await kill()
        })
        // One is killed after a batch was applied, before its answer arrived: the other takes over.
        const oneKilled = killedAtAnswer(1)
        start()
        start()
        for (let n = FIRST; n < LATER; n++) for (const partition of PARTITIONS) await send(partition, states(partition, n))
        await oneKilled
        start()
        await allSent()
        // Both are, and more could be read when the batch is sent again.
        const bothKilled = killedAtAnswer(2)
        for (const partition of PARTITIONS) await send(partition, states(partition, LATER))
        await bothKilled
        for (const partition of PARTITIONS) await send(partition, states(partition, LATER + 1))
        start()
        await allSent()
        expect(await events()).toEqual(eachOnce(LATER + 2))
      })

      test("goes on by itself after a 503 and after a restart of the service", async () => {
        await whileLocked(app, async () => {
          for (const partition of PARTITIONS) await send(partition, states(partition, LATER + 2))
          await refuseOne(app)
        })
        await allSent()
        await app.main?.end("SIGKILL")
        for (const partition of PARTITIONS) await send(partition, states(partition, LATER + 3))
        app.main = await app.start(["api"])
        await allSent()
        expect(await events()).toEqual(eachOnce(LATER + 4))
      })

      test("sets refused messages aside with their reasons, and sends all others", async () => {
        const [pending = "", confirmed = ""] = states(0, LATER + 4)
        const fields = { amount: "-1", from: 1, to: 2, fee: 3, blockNumber: 4, blockHash: 5, memo: 6 }
        // With the whole reason, its copy would exceed the broker's limit of 1 MiB.
        const wrong = JSON.stringify(transaction(vaultOf(0), number(0, LATER + 5), fields)).padEnd(1_047_900)
        await send(0, [pending, "no JSON", undefined, "\u00a0 "])
        await send(0, [wrong])
        await send(0, [JSON.stringify(JSON.parse(confirmed), null, 2)])
        await send(1, states(1, LATER + 4))
        await allSent()
        expect(await broker.refused(`${topic}-refused`, 4)).toEqual([
          { value: "no JSON", reason: expect.stringContaining("line 1: is not JSON") },
          { value: undefined, reason: expect.stringContaining("line 1: must be a JSON object") },
          { value: "\u00a0 ", reason: expect.stringContaining("line 1: must be a JSON object") },
          { value: wrong, reason: expect.stringContaining("line 1: amount must be a decimal string") }
        ])
        expect(await events()).toEqual(eachOnce(LATER + 5))
      })

      test("takes no answer of a gateway for the service's, and sends no token elsewhere", async () => {
        await kill()
        for (const partition of PARTITIONS) await send(partition, states(partition, LATER + 5).slice(0, 1))
        for (const page of [gateway.redirect, gateway.badRequest]) {
          gateway.instead = page
          const child = start()
          expect(await child.exited).toBe(1)
          running.delete(child)
          expect(await new Response(child.stderr).text()).toContain(`was refused: ${page().status}`)
        }
        gateway.instead = gateway.maintenance
        start(impatient(command.at(-1) ?? ""))
        for (const page of [gateway.maintenance, gateway.acknowledgement, gateway.stalled]) {
          gateway.instead = page
          const before = gateway.answered
          await until("a batch is sent again", () => gateway.answered > before + 2)
        }
        gateway.instead = undefined
        for (const partition of PARTITIONS) await send(partition, states(partition, LATER + 5).slice(1))
        await allSent()
        expect(await events()).toEqual(eachOnce(LATER + 6))
        expect(gateway.strays).toEqual([])
      })

      test("sends the records of a topic that was created again, whose offsets were used before", async () => {
        const again = `${topic}-again`
        const records = [6, 7].map((n) => transaction(vaultOf(0), number(0, LATER + n)))
        for (const record of records) {
          await kill()
          await broker.create(again, 1)
          await broker.send(again, 0, [JSON.stringify(record)])
          // As a mirrored cluster has it after a failover amid a batch: its own offset beside the other cluster's metadata.
          if (record === records[1]) await commit(again, 0, "7-100000")
          start(examples, again)
          await sentUpTo(again, new Map([[0, 1]]))
          await broker.delete(again)
          await until("its offsets are gone", async () => (await broker.committed("custody-feed", again)).size === 0)
        }
        const stored = await app.sql("SELECT 1 FROM transactions WHERE hash = ANY($1)", [records.map(({ hash }) => hash)])
        expect(stored.length).toBe(records.length)
      })
    })
  }
})
