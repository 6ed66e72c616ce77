/** Connection URLs are read in one way only: a password with separators or bare percent signs is refused with the remedy. */
import { expect, test } from "bun:test"
import { ConfigProvider, Effect, Redacted } from "effect"
import { inspect } from "../../../src/runtime/settings/Settings.ts"
import { unknownSettings } from "../../../src/runtime/settings/unknownSettings.ts"

const read = (env: Readonly<Record<string, string>>) =>
  Effect.runPromise(Effect.withConfigProvider(inspect, ConfigProvider.fromMap(new Map(Object.entries(env)))))

const urls: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgres://custody:PASSWORD@db.example.com:5432/custody",
  DATABASE_READ_URL: "postgresql://custody:PASSWORD@db.example.com/custody",
  SMTP_URL: "smtps://mail:PASSWORD@mail.example.com",
  WEBHOOK_PROXY_URL: "http://user:PASSWORD@proxy.example.com:3128",
  OTEL_EXPORTER_OTLP_ENDPOINT: "https://user:PASSWORD@otlp.example.com"
}

test("every URL setting says to percent-encode a password that is not", async () => {
  for (const [name, url] of Object.entries(urls)) {
    // 12/ is a valid port with a path for a parser of URLs, and %ff no text.
    for (const password of ["a/b", "12/b", "a#b", "12#b", "a?b", "12?b", "a@b", "100%", "%zz", "%ff"]) {
      const { faults } = await read({ [name]: url.replace("PASSWORD", password) })
      expect([password, faults]).toEqual([password, [expect.stringMatching(new RegExp(`^${name}: .*percent-encoded`))]])
      expect(faults.join()).not.toContain(password)
    }
  }
})

test("a percent-encoded password, and one without special characters, is read", async () => {
  for (const password of ["plain:-_.~!$&'()*+,;=", encodeURIComponent("a/b#c?d@e%f"), ""]) {
    const given = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, url.replace("PASSWORD", password)]))
    const { faults, values } = await read(given)
    expect([password, faults]).toEqual([password, []])
    expect(values?.databaseUrl && Redacted.value(values.databaseUrl)).toBe(given["DATABASE_URL"] ?? "")
  }
  expect((await read({ DATABASE_URL: "mysql://db/x" })).faults).toEqual([
    "DATABASE_URL: read a value of 12 characters, expected a URL that starts with postgres:// or postgresql://."
  ])
})

test("a password in a URL is in no message and in no list of settings", async () => {
  const { inspected } = await read(urls)
  for (const name of Object.keys(urls))
    expect([name, inspected.find((one) => one.name === name)?.value]).toEqual([
      name,
      name === "OTEL_EXPORTER_OTLP_ENDPOINT" ? "https://***@otlp.example.com" : "set (hidden)"
    ])
  const given = "https://user:pass/word@example.com"
  const shown = {
    PORTAL_OIDC_ISSUER: given.replace("/word", "word"),
    TEMPORAL_UI_URL: given,
    PORTAL_BASE_URL: given,
    CORS_ORIGINS: `https://a.example,${given}`
  }
  for (const [name, url] of Object.entries(shown)) {
    const { faults } = await read({ [name]: url })
    expect([faults.length > 0, faults.join()]).toEqual([true, expect.stringMatching(/:\/\/\*\*\*@example\.com/)])
    expect(faults.join()).not.toMatch(/pass\/?word@|user:/)
  }
  expect((await read({ PORTAL_OIDC_ISSUER: shown.PORTAL_OIDC_ISSUER })).faults[0]).toEndWith("expected a URL without user and password.")
})

test("variables that look like settings are found, each with the nearest setting", () => {
  const environment = {
    WEBHOOK_ALLOW_CIDR: "10.0.0.0/8",
    PORTAL_URL: "https://custody.example.com",
    TRUSTED_PROXY: "10.0.0.1",
    DATABASE_URI: "postgres://db/custody",
    WEBHOOK_PROXY: "",
    DATABASE_URL: "postgres://db/custody",
    DATABASE_HOST: "db",
    OTEL_SERVICE_NAME: "custody",
    LOG_FILE: "x",
    POST: "x",
    PATH: "/bin"
  }
  expect(unknownSettings(environment)).toEqual([
    { name: "WEBHOOK_ALLOW_CIDR", nearest: "WEBHOOK_ALLOW_CIDRS" },
    { name: "PORTAL_URL", nearest: expect.stringMatching(/^PORTAL_/) },
    { name: "TRUSTED_PROXY", nearest: "TRUSTED_PROXIES" },
    { name: "DATABASE_URI", nearest: "DATABASE_URL" }
  ])
})
