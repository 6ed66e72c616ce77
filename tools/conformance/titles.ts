/** The titles of the suite's tests, read from the test files without running them. */
import * as fs from "node:fs"
import * as path from "node:path"
import ts from "typescript"

/** A test or a group of tests. `…` in its title is replaced at run time. */
export interface Title {
  /** Path from the repository's root. */
  readonly file: string
  readonly title: string
  /** Titles of the groups around it, outermost first. */
  readonly groups: ReadonlyArray<string>
  /** Whether it is a group. */
  readonly isGroup: boolean
}

const root = path.resolve(import.meta.dir, "../..")

/** A string or a template as text. */
const textOf = (node: ts.Node | undefined): string | undefined => {
  if (node === undefined) return undefined
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node)) return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join("")
  return undefined
}

/** `test`, `test.skipIf(…)`, `describe.if(…)` and the like. */
const testFunction = (node: ts.Expression): string | undefined => {
  if (ts.isIdentifier(node)) return node.text === "test" || node.text === "describe" ? node.text : undefined
  return ts.isPropertyAccessExpression(node) || ts.isCallExpression(node) ? testFunction(node.expression) : undefined
}

const titlesOf = (file: string): ReadonlyArray<Title> => {
  const found: Array<Title> = []
  const visit = (node: ts.Node, groups: ReadonlyArray<string>): void => {
    const add = (title: string, isGroup: boolean) => found.push({ file, title, groups, isGroup })
    let inside = groups
    const called = ts.isCallExpression(node) ? testFunction(node.expression) : undefined
    if (ts.isCallExpression(node) && called !== undefined) {
      const title = textOf(node.arguments[0])
      if (title !== undefined) {
        add(title, called === "describe")
        inside = [...groups, title]
      }
    }
    // Tests generated from a table use its keys in their titles.
    if (ts.isPropertyAssignment(node) && ts.isStringLiteral(node.name) && ts.isArrayLiteralExpression(node.initializer))
      add(node.name.text, false)
    ts.forEachChild(node, (child) => visit(child, inside))
  }
  visit(ts.createSourceFile(file, fs.readFileSync(path.join(root, file), "utf8"), ts.ScriptTarget.Latest), [])
  return found
}

/** Every title of the suite, by file. */
export const titles: ReadonlyArray<Title> = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].sort().flatMap(titlesOf)
