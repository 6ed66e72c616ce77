/**
 * The e-mail of a notice: its text with a link to the webhook or the key in the portal, and the same as HTML that loads no
 * external content. Decision D-23. C-13.
 */

import type { Text } from "./noticeTexts.ts"

/** The content of a notice. */
export interface Notice {
  readonly subject: string
  readonly body: string
  /** The webhook that it is about; null if it is about a key. */
  readonly webhookId: string | null
  /** The webhook's description; empty when it has none. */
  readonly description: string
  /** The key that it is about, if its recipient can rotate it. */
  readonly keyId: string | null
}

/** An e-mail without its sender and recipient. */
export interface Message {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** The longest part of a description that a subject shows, in characters. */
const SHOWN = 60

/** A description on one line, cut where it is long. */
const short = (description: string): string => {
  const characters = [...description.replace(/\s+/g, " ").trim()]
  return characters.length > SHOWN ? `${characters.slice(0, SHOWN - 1).join("")}…` : characters.join("")
}

const ROW = /^([A-Z][A-Za-z ]*): +(.+)$/

/** A paragraph of a text as HTML: a table of names and values, lines to copy, or a sentence. */
const paragraph = (text: string): string => {
  const lines = text.split("\n")
  const rows = lines.map((line) => ROW.exec(line))
  if (rows.length > 1 && rows.every((row) => row !== null))
    return `<table style="border-collapse:collapse">${rows
      .map(
        ([, name = "", value = ""]) =>
          `<tr><th style="text-align:left;font-weight:normal;color:#555;padding:2px 16px 2px 0">${Bun.escapeHTML(name)}</th><td>${Bun.escapeHTML(value)}</td></tr>`
      )
      .join("")}</table>`
  return lines.some((line) => line.startsWith("  "))
    ? `<pre style="background:#f4f4f5;padding:12px;white-space:pre-wrap">${Bun.escapeHTML(text)}</pre>`
    : `<p>${Bun.escapeHTML(lines.join(" "))}</p>`
}

/** A link in an e-mail. */
interface Link {
  readonly href: string
  /** What the link is, in plain text. */
  readonly title: string
  readonly button: string
}

const linkOf = ({ keyId, webhookId }: Notice, portal: string): Link | undefined => {
  const at = `${portal.replace(/\/+$/, "")}/portal`
  return webhookId !== null
    ? { href: `${at}/webhooks/${webhookId}`, title: "The webhook in the portal", button: "Open the webhook" }
    : keyId !== null
      ? { href: `${at}/keys/new?replaces=${keyId}`, title: "Rotate the key in the portal", button: "Rotate the key" }
      : undefined
}

const buttonOf = ({ button, href }: Link) =>
  `<p><a href="${Bun.escapeHTML(href)}" style="display:inline-block;padding:10px 16px;border-radius:6px;background:#1f3fd1;color:#ffffff;text-decoration:none">${button}</a></p>`

/** An e-mail of a text whose paragraphs are separated by empty lines, and a link. */
export const letterOf = ({ body, subject }: Text, link: Link | undefined): Message => ({
  subject,
  text: link === undefined ? body : `${body}\n${link.title}:\n  ${link.href}\n`,
  html:
    `<!doctype html><html lang="en"><body style="font:15px/1.5 system-ui,sans-serif;color:#18181b;max-width:640px">` +
    `${body.trim().split("\n\n").map(paragraph).join("")}${link === undefined ? "" : buttonOf(link)}</body></html>`
})

/**
 * The e-mail of a notice. The subject names the webhook by its description where it has one. `portal` is the portal's
 * public origin; without one there is no link.
 */
export const messageOf = (notice: Notice, portal: string | undefined): Message => {
  const { body, subject, webhookId } = notice
  const name = short(notice.description)
  const named = name === "" || webhookId === null ? subject : subject.replace(webhookId, () => `"${name}"`)
  return letterOf({ subject: named, body }, portal === undefined ? undefined : linkOf(notice, portal))
}
