/**
 * `--help` of the program and its commands. @effect/cli prints one line per command, however long, and a sentence about
 * every type, and has no option for either; this formats its descriptions for the width of the terminal.
 */
import { stripVTControlCharacters } from "node:util"
import * as CliConfig from "@effect/cli/CliConfig"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as HelpDoc from "@effect/cli/HelpDoc"
import { left, type Styles, styles, widthOf, wrap } from "../terminal/text.ts"
import { exitCodes } from "./exit.ts"

/** Without the options that the library adds to every command; the program's help lists them once. */
const config = CliConfig.make({ showBuiltIns: false, showTypes: true })

/** What @effect/cli prints for every option; required options are marked here instead. */
const OPTIONAL = "This setting is optional."
const SAID_OF_ALL = new Set([
  "A user-defined piece of text.",
  "A user-defined piece of text that is confidential.",
  "A true or false value.",
  OPTIONAL
])
const REPEATED = "This option may be repeated zero or more times."

interface Section {
  readonly title: string
  readonly lines: Array<string>
  readonly entries: Array<readonly [string, ReadonlyArray<string>]>
}

const flat = (doc: HelpDoc.HelpDoc): ReadonlyArray<HelpDoc.HelpDoc> =>
  doc._tag === "Sequence" ? [...flat(doc.left), ...flat(doc.right)] : [doc]

const textOf = (doc: HelpDoc.HelpDoc): string => stripVTControlCharacters(HelpDoc.toAnsiText(doc)).trim()

const sectionsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<Section> => {
  const sections: Array<Section> = []
  for (const part of flat(doc)) {
    const current = sections.at(-1)
    if (part._tag === "Header") sections.push({ title: textOf(HelpDoc.p(part.value)), lines: [], entries: [] })
    else if (part._tag === "DescriptionList")
      for (const [name, description] of part.definitions)
        current?.entries.push([
          textOf(HelpDoc.p(name)),
          flat(description)
            .map(textOf)
            .filter((one) => one !== "")
        ])
    else if (part._tag !== "Empty") current?.lines.push(textOf(part))
  }
  return sections
}

const entriesOf = ({ entries, title }: Section): ReadonlyArray<readonly [string, string]> =>
  entries.map(([name, said]) => {
    const repeated = said.some((one) => one.endsWith(REPEATED))
    const text = said
      .filter((one) => !SAID_OF_ALL.has(one))
      .join(" ")
      .replace(REPEATED, "")
      .trim()
    const required = title === "OPTIONS" && !said.includes(OPTIONAL) && !repeated && / text/.test(name) && !/default/i.test(text)
    return [name.replace(/ (?:text|redacted)(?:\.\.\.)?$/, repeated ? " <text>…" : " <text>"), required ? `${text} (required)` : text]
  })

const table = (entries: ReadonlyArray<readonly [string, string]>, columns: number): ReadonlyArray<string> => {
  const width = Math.max(...entries.map(([name]) => widthOf(name)))
  return entries.flatMap(([name, text]) =>
    wrap(text, columns - width - 4).map((line, index) => `  ${left(index === 0 ? name : "", width)}  ${line}`)
  )
}

const titled = ({ bold }: Styles, title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length === 0 ? [] : ["", bold(title), ...lines]

const TITLES = { ARGUMENTS: "Arguments", OPTIONS: "Options" } as const

interface Named {
  readonly path: string
  readonly sections: ReadonlyArray<Section>
  readonly under: ReadonlyArray<Named>
}

const inOrder = (commands: ReadonlyArray<Named>): ReadonlyArray<Named> => commands.toSorted((a, b) => (a.path < b.path ? -1 : 1))

/** A command with its subcommands. The library returns a command without subcommands as its own. */
const named = (parent: string, command: CommandDescriptor.Command<unknown>): Named => {
  const [own = ""] = CommandDescriptor.getNames(command)
  const path = `${parent} ${own}`
  const below = [...CommandDescriptor.getSubcommands(command)].filter(([name]) => name !== own)
  return {
    path,
    // Rendered only when it is printed: rendering takes a tenth of a second, which would slow every start.
    get sections() {
      return sectionsOf(CommandDescriptor.getHelp(command, config))
    },
    under: inOrder(below.map(([, one]) => named(path, one)))
  }
}

/** The program: its description, and its commands by name. */
export const program = (said: string, commands: ReadonlyArray<CommandDescriptor.Command<unknown>>): Named => ({
  path: "custody",
  sections: [{ title: "DESCRIPTION", lines: [said], entries: [] }],
  under: inOrder(commands.map((one) => named("custody", one)))
})

/** The command named by the words before the first option. */
const find = (root: Named, [word, ...rest]: ReadonlyArray<string>): Named => {
  const next = root.under.find(({ path }) => path === `${root.path} ${word}`)
  return next === undefined ? root : find(next, rest)
}

const said = ({ sections }: Named): string => sections.find(({ title }) => title === "DESCRIPTION")?.lines.join(" ") ?? ""

/** Every executable command below this one, by name. */
const leaves = (one: Named): ReadonlyArray<Named> => (one.under.length === 0 ? [one] : one.under.flatMap(leaves))

const usageOf = ({ path, sections, under }: Named): string => {
  if (under.length > 0) return `${path} <command>`
  const of = (title: string) => sections.find((section) => section.title === title)
  const args = of("ARGUMENTS")?.entries.map(([name]) => ` ${name}`) ?? []
  return `${path}${of("OPTIONS") === undefined ? "" : " [options]"}${args.join("")}`
}

/** Whether the command line (without the program) asks for help, or ends at a command that is only a group. */
export const asksForHelp = (root: Named, words: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--")
  if ((end < 0 ? words : words.slice(0, end)).some((word) => word === "--help" || word === "-h")) return true
  const found = find(root, words)
  return found.path === ["custody", ...words].join(" ") && found.under.length > 0
}

const MORE = [
  "Every command takes --help. Settings are environment variables: `custody doctor` shows and checks them.",
  "Shell completions: `custody --completions bash`, `zsh` or `fish`. Version: `custody --version`."
]

/** The help for a command line, in lines of at most `columns` columns. */
export const helpText = (
  root: Named,
  words: ReadonlyArray<string>,
  screen: { readonly columns: number; readonly coloured: boolean }
): string => {
  const style = styles(screen.coloured)
  const found = find(root, words)
  const commands = leaves(found)
    .filter(({ path }) => path !== found.path)
    .map((one) => [one.path.slice("custody ".length), said(one)] as const)
  const listed = Object.entries(TITLES).flatMap(([title, shown]) =>
    found.sections
      .filter((section) => section.title === title)
      .flatMap((section) => titled(style, shown, table(entriesOf(section), screen.columns)))
  )
  const more = MORE.flatMap((text) => wrap(text, screen.columns - 2)).map((line) => `  ${line}`)
  return [
    ...wrap(said(found), screen.columns),
    ...titled(style, "Usage", [`  ${usageOf(found)}`]),
    ...titled(style, "Commands", commands.length === 0 ? [] : table(commands, screen.columns)),
    ...listed,
    ...titled(style, "Exit codes", table(Object.entries(exitCodes), screen.columns)),
    ...(found.path === "custody" ? titled(style, "More", more) : [])
  ].join("\n")
}
