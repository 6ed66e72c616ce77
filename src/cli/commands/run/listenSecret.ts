/**
 * The signing secret of `custody listen`. Without `--secret` it is generated once and kept in the user's configuration folder, so
 * that a developer configures their server once. C-12.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Usage } from "../exit.ts"

/** A secret in the form of a webhook's; fails for text of another form. `where` is what the text was read from. */
export const readSecret = (text: string, where = "--secret"): string => {
  const bytes = Buffer.from(text.replace(/^whsec_/, ""), "base64")
  if (!text.startsWith("whsec_") || bytes.length < 16 || `whsec_${bytes.toString("base64")}` !== text)
    throw new Usage({ message: `${where} is expected to be whsec_ and at least 16 bytes in base64.` })
  return text
}

/** The file that keeps the secret. The XDG specification ignores a relative `XDG_CONFIG_HOME`. */
const secretFile = (configHome: string): string =>
  path.join(path.isAbsolute(configHome) ? configHome : path.join(os.homedir(), ".config"), "custody", "listen-secret")

/**
 * The kept secret, which only the user can read; generated if there is none. Fails if it can neither be read nor written.
 * `configHome` is `XDG_CONFIG_HOME`, empty if that is not set.
 */
export const keptSecret = (configHome: string): string => {
  const file = secretFile(configHome)
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
    // Of two commands that begin at the same time, one writes it.
    if (!fs.existsSync(file)) fs.writeFileSync(file, `whsec_${randomBytes(32).toString("base64")}\n`, { mode: 0o600, flag: "wx" })
  } catch (error) {
    if (!fs.existsSync(file))
      throw new Usage({
        message: `The signing secret cannot be kept: ${error instanceof Error ? error.message : error}. Give one with --secret.`
      })
  }
  return readSecret(fs.readFileSync(file, "utf8").trim(), `The content of ${file}`)
}
