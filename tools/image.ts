/**
 * Builds the image's content without Docker: the Dockerfile's stages as directories, with its COPY and RUN instructions
 * executed by this Bun. It proves that the image's files and dependencies are enough to run the service.
 */
import * as fs from "node:fs"
import * as path from "node:path"

const root = path.resolve(import.meta.dir, "..")

/** A path of a stage, in its directory. */
const inside = (folder: string, workdir: string, target: string) =>
  path.join(folder, target.startsWith("/") ? target : path.join(workdir, target))

const run = async (command: string, cwd: string) => {
  const child = Bun.spawn(["sh", "-ec", command], {
    cwd,
    env: { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` },
    stdout: "pipe",
    stderr: "pipe"
  })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`RUN ${command}:\n${out}${error}`)
}

/** Builds the image's last stage in a folder; returns its working directory and its environment. */
export const buildImage = async (folder: string) => {
  const lines = fs
    .readFileSync(path.join(root, "Dockerfile"), "utf8")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .filter((line) => /^[A-Z]+ /.test(line))
  let stage = "",
    workdir = "/"
  let env: Record<string, string> = {}
  for (const line of lines) {
    const [instruction = "", ...words] = line.trim().split(/\s+/)
    switch (instruction) {
      case "FROM":
        stage = path.join(folder, words[2] ?? "image")
        env = {}
        break
      case "WORKDIR":
        workdir = words[0] ?? "/"
        fs.mkdirSync(path.join(stage, workdir), { recursive: true })
        break
      case "COPY": {
        const from = words[0]?.startsWith("--from=") === true ? path.join(folder, words[0].slice("--from=".length)) : root
        const paths = words.filter((word) => !word.startsWith("--"))
        const target = paths.at(-1) ?? ""
        for (const source of paths.slice(0, -1)) {
          const to = inside(stage, workdir, target)
          const isFile = fs.statSync(path.join(from, source)).isFile()
          fs.cpSync(path.join(from, source), isFile ? path.join(to, path.basename(source)) : to, {
            recursive: true,
            verbatimSymlinks: true
          })
        }
        break
      }
      case "RUN":
        // Instructions without Bun prepare users and directories of the container.
        if (words[0] === "bun") await run(words.join(" "), path.join(stage, workdir))
        break
      case "ENV":
        for (const word of words) env[word.split("=")[0] ?? ""] = word.slice(word.indexOf("=") + 1)
        break
      default:
    }
  }
  return { workdir: path.join(stage, workdir), env }
}
