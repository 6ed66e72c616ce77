/** Help of the command line: it fits a terminal and does not depend on settings; shell completions work. */
import { afterAll, describe, expect, test } from "bun:test"
import { demo } from "../../../src/cli/commands/demo.ts"
import { doctor } from "../../../src/cli/commands/doctor.ts"
import { exitCodes } from "../../../src/cli/commands/exit.ts"
import { helpText, program } from "../../../src/cli/commands/help.ts"
import { keys } from "../../../src/cli/commands/keys.ts"
import { listen } from "../../../src/cli/commands/listen.ts"
import { load } from "../../../src/cli/commands/load.ts"
import { organizations } from "../../../src/cli/commands/organizations.ts"
import { secrets } from "../../../src/cli/commands/reencrypt.ts"
import { migrate, start } from "../../../src/cli/commands/start.ts"
import { statements } from "../../../src/cli/commands/statements.ts"
import { users } from "../../../src/cli/commands/users.ts"
import { verify } from "../../../src/cli/commands/verify.ts"
import { cli } from "../../support/app.ts"
import { temporaryFiles } from "../../support/files.ts"

const files = temporaryFiles()
afterAll(files.remove)

const commands = (text: string): ReadonlyArray<string> =>
  (text.split("\nCommands\n")[1]?.split("\n\n")[0] ?? "").split("\n").flatMap((line) => /^ {2}(\w+(?: \w+)?) {2,}\S/.exec(line)?.[1] ?? [])

// Invalid settings: people with invalid settings need help, too.
const broken = { PORT: "eighty", MASTER_KEY: "short" }

describe("help", () => {
  test("of the program names every command and exit code, with or without a command", async () => {
    const [asked, bare] = await Promise.all([cli(["--help"], broken), cli([], broken)])
    expect([asked.code, asked.stderr, bare.code, bare.stdout]).toEqual([0, "", 0, asked.stdout])
    for (const name of ["start", "migrate", "load", "keys create", "keys list", "keys update", "keys revoke", "demo", "doctor"]) {
      expect(commands(asked.stdout)).toContain(name)
    }
    for (const [code, meaning] of Object.entries(exitCodes)) expect(asked.stdout).toMatch(new RegExp(`\\n {2}${code} +${meaning}\\n`))
  })

  test("of every command explains its usage and each option, in lines that fit the terminal", async () => {
    const shown = program(
      "",
      [start, migrate, load, keys, secrets, users, organizations, statements, demo, listen, verify, doctor].map(
        ({ descriptor }) => descriptor
      )
    )
    const names = commands((await cli([], broken)).stdout)
    expect(names.length).toBeGreaterThan(9)
    for (const name of names) {
      for (const columns of [60, 80, 100]) {
        const text = helpText(shown, [...name.split(" "), "--help"], { columns, coloured: false })
        expect(text).toMatch(new RegExp(`^[A-Z][^]*\\.\n\nUsage\n {2}custody ${name}\\b`))
        for (const line of text.split("\n")) expect([line, Bun.stringWidth(line) <= columns]).toEqual([line, true])
        for (const line of text.split("\n").filter((one) => /^ {2}(--|<)/.test(one))) expect(line).toMatch(/^ {2}\S.*? {2,}\S/)
      }
    }
    expect(helpText(shown, ["keys", "create"], { columns: 100, coloured: false })).toMatch(/--user <text> +.*\(required\)/)
  })

  test("of a group lists its commands, with and without --help", async () => {
    const [asked, bare] = await Promise.all([cli(["keys", "-h"], broken), cli(["keys"], broken)])
    expect([asked.code, bare.code, bare.stdout]).toEqual([0, 0, asked.stdout])
    expect(commands(asked.stdout)).toEqual(["keys create", "keys list", "keys revoke", "keys update"])
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
