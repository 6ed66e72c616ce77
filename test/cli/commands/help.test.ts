/** Help of the command line: it fits a terminal and does not depend on settings; shell completions work. */
import { afterAll, describe, expect, test } from "bun:test"
import * as path from "node:path"
import { exitCodes } from "../../../src/cli/commands/exit.ts"
import { baseEnv, cli, PROGRAM } from "../../support/app.ts"
import { temporaryFiles } from "../../support/files.ts"

const files = temporaryFiles()
afterAll(files.remove)

/** The commands of a list, with the words under each. */
const commands = (text: string): ReadonlyMap<string, string> =>
  new Map([...text.matchAll(/^ {2}- ([a-z]+(?: [a-z]+)?)\b.*\n {6}(.+)$/gm)].map(([, name = "", purpose = ""]) => [name, purpose]))

/** The options and arguments of a command, with the paragraphs under each. */
const described = (text: string): ReadonlyArray<readonly [string, ReadonlyArray<string>]> =>
  text
    .split(/\n(?=--|<|[A-Z ]+\n)/)
    .filter((part) => /^(--|<)/.test(part))
    .map((part) => part.split("\n\n"))
    .map(([name = "", ...paragraphs]) => [name, paragraphs.map((one) => one.trim())])

/** What the library prints about every option. */
const GENERAL = /^(A user-defined|A true or false|An integer|An existing file|This setting is optional|This option may be repeated|$)/

/** What the program prints on a terminal of 80 columns. */
const onTerminal = async (args: ReadonlyArray<string>, env: { readonly [name: string]: string }): Promise<string> => {
  let screen = ""
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const child = Bun.spawn([process.execPath, PROGRAM, ...args], {
    cwd: path.resolve(import.meta.dir, "../../.."),
    env: { ...baseEnv(), TERM: "xterm-256color", ...env },
    terminal: {
      cols: 80,
      rows: 24,
      data: (_, bytes) => {
        screen += Buffer.from(bytes).toString()
      },
      exit: () => close()
    }
  })
  expect(await child.exited).toBe(0)
  await closed
  return screen.replaceAll("\r\n", "\n")
}

// Invalid settings: people with invalid settings need help, too.
const broken = { PORT: "eighty", MASTER_KEY: "short" }

describe("help", () => {
  test("of the program names every command and exit code, with or without a command", async () => {
    const [asked, bare] = await Promise.all([cli(["--help"], broken), cli([], broken)])
    expect([asked.code, asked.stderr, bare.code, bare.stdout]).toEqual([0, "", 0, asked.stdout])
    const named = commands(asked.stdout)
    for (const name of ["start", "migrate", "load", "keys create", "keys list", "keys update", "keys revoke", "demo", "doctor"]) {
      expect([name, named.get(name)]).toEqual([name, expect.stringMatching(/^[A-Z].*\.$/)])
    }
    for (const [code, meaning] of Object.entries(exitCodes)) expect(asked.stdout).toContain(`\n${code}: ${meaning}\n`)
  })

  test("of every command describes its purpose, arguments and options", async () => {
    const named = [...commands((await cli([], broken)).stdout)]
    expect(named.length).toBeGreaterThan(15)
    for (const [name, purpose] of named) {
      const { code, stdout } = await cli([...name.split(" "), "--help"], broken)
      expect([name, code, stdout]).toEqual([name, 0, expect.stringContaining(`\n\nDESCRIPTION\n\n${purpose}\n`)])
      for (const [option, paragraphs] of described(stdout)) {
        expect([name, option, paragraphs.filter((one) => !GENERAL.test(one))]).toEqual([name, option, [expect.any(String)]])
      }
    }
    expect(described((await cli(["load", "--help"], broken)).stdout).map(([option]) => option)).toEqual([
      "<file>",
      "--from integer",
      "--no-events"
    ])
  })

  test("of a group lists its commands, with and without --help", async () => {
    const [asked, bare] = await Promise.all([cli(["keys", "-h"], broken), cli(["keys"], broken)])
    expect([asked.code, bare.code, bare.stdout]).toEqual([0, 0, asked.stdout])
    expect([...commands(asked.stdout).keys()]).toEqual(["create", "list", "update", "revoke"])
  })

  test("fits a terminal, and has colors only there and without NO_COLOR", async () => {
    const [colored, plain, piped, wrong] = await Promise.all([
      onTerminal(["--help"], broken),
      onTerminal(["--help"], { ...broken, NO_COLOR: "1" }),
      cli(["--help"], broken),
      cli(["keys", "nonsense"], broken)
    ])
    expect(colored).toContain("\u001b[")
    for (const text of [plain, piped.stdout, wrong.stderr]) expect(text).not.toContain("\u001b")
    for (const line of colored.split("\n")) expect([line, Bun.stringWidth(line) <= 80]).toEqual([line, true])
    expect(plain.replaceAll(/\s+/g, " ")).toBe(piped.stdout.replaceAll(/\s+/g, " "))
  })

  test("--version prints the package's version", async () => {
    expect((await cli(["--version"], broken)).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/)
  })
})

describe("shell completions", () => {
  test("complete commands and options in bash", async () => {
    const { code, stdout } = await cli(["--completions", "bash"], broken)
    expect(code).toBe(0)
    const file = files.write("custody.bash", stdout)
    const complete = async (...words: ReadonlyArray<string>) => {
      const script = `source ${file}; COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
        _custody_bash_completions custody; printf '%s\\n' "\${COMPREPLY[@]}"`
      return (await new Response(Bun.spawn(["bash", "-c", script]).stdout).text()).trim().split("\n").sort()
    }
    expect(await complete("custody", "do")).toEqual(["doctor"])
    expect(await complete("custody", "keys", "re")).toEqual(["revoke"])
    expect(await complete("custody", "load", "--no")).toEqual(["--no-events"])
  })

  test("exist for zsh and fish, too", async () => {
    const [zsh, fish] = await Promise.all([cli(["--completions", "zsh"], broken), cli(["--completions", "fish"], broken)])
    expect([zsh.code, fish.code]).toEqual([0, 0])
    expect(zsh.stdout).toContain("#compdef custody")
    expect(fish.stdout).toMatch(/^complete -c custody /m)
  })
})
