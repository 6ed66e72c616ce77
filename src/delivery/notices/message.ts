/**
 * The e-mail of a notice: its text with a link to the webhook's page in the portal, and the same as HTML that loads no
 * external content. Decision D-23.
 */

/** The content of a notice. */
export interface Notice {
  readonly subject: string
  readonly body: string
  readonly webhookId: string
  /** The webhook's description; empty when it has none. */
  readonly description: string
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

const button = (href: string) =>
  `<p><a href="${Bun.escapeHTML(href)}" style="display:inline-block;padding:10px 16px;border-radius:6px;background:#1f3fd1;color:#ffffff;text-decoration:none">Open the webhook</a></p>`

/**
 * The e-mail of a notice. The subject names the webhook by its description where it has one. `portal` is the portal's
 * public origin; without one there is no link.
 */
export const messageOf = ({ body, description, subject, webhookId }: Notice, portal: string | undefined): Message => {
  const name = short(description)
  const page = portal === undefined ? undefined : `${portal.replace(/\/+$/, "")}/portal/webhooks/${webhookId}`
  const paragraphs = body.trim().split("\n\n").map(paragraph)
  return {
    subject: name === "" ? subject : subject.replace(webhookId, () => `"${name}"`),
    text: page === undefined ? body : `${body}\nThe webhook in the portal:\n  ${page}\n`,
    html:
      `<!doctype html><html lang="en"><body style="font:15px/1.5 system-ui,sans-serif;color:#18181b;max-width:640px">` +
      `${paragraphs.join("")}${page === undefined ? "" : button(page)}</body></html>`
  }
}
