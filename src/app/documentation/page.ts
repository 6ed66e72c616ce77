/** The layout of the documentation's pages: one style sheet, one bar of links, no scripts, no other hosts. */
import { createHash } from "node:crypto"

/** A file name with a hash of the content, so that browsers can cache it. */
export const named = (stem: string, extension: string, content: string): string =>
  `/v1/docs/files/${stem}-${createHash("sha256").update(content).digest("hex").slice(0, 10)}.${extension}`

/** The styles of every documentation page except the reference. */
export const style = `:root{color-scheme:light dark;--ink:light-dark(#161b24,#e8ecf2);--soft:light-dark(#545f6e,#9da8b8);--line:light-dark(#e1e5ea,#2a303b);
--back:light-dark(#fff,#0f1217);--raised:light-dark(#f4f6f8,#191e26);--accent:light-dark(#2452c7,#93b4ff)}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.65 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.bar{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;align-items:center;padding:.75rem 1.5rem;border-bottom:1px solid var(--line)}
.bar b{margin-right:auto}.bar a{color:var(--soft);text-decoration:none}.bar a:hover,.bar a[aria-current]{color:var(--accent)}
.columns{display:grid;grid-template-columns:15rem minmax(0,46rem);gap:3rem;max-width:72rem;margin:0 auto;padding:2rem 1.5rem 5rem}
.guides{position:sticky;top:1.5rem;align-self:start;font-size:.92rem}.guides h2{margin:1.2rem 0 .3rem;font-size:.8rem;color:var(--soft);font-weight:600}
.guides ul{list-style:none;margin:0;padding:0}.guides a{display:block;padding:.2rem .6rem;border-radius:6px;color:var(--ink);text-decoration:none}
.guides a:hover,.guides a[aria-current]{background:var(--raised);color:var(--accent)}
main{min-width:0;overflow-wrap:break-word}main a{color:var(--accent)}h1{font-size:2rem;line-height:1.2;letter-spacing:-.02em;margin:.2rem 0 1rem}
h2{font-size:1.3rem;margin:2.2rem 0 .6rem}h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
code{padding:.1em .35em;border-radius:5px;background:var(--raised);font:.88em ui-monospace,"SF Mono",Menlo,Consolas,monospace}
pre{padding:1rem 1.1rem;border:1px solid var(--line);border-radius:10px;background:var(--raised);overflow-x:auto}pre code{padding:0;background:none}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.94rem}th,td{padding:.45rem .8rem .45rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:3px solid var(--accent);background:var(--raised)}img{max-width:100%}
@media(max-width:800px){.columns{grid-template-columns:minmax(0,1fr);gap:1rem}.guides{position:static}}`

/** Where the style sheet is. */
export const stylePath = named("docs", "css", style)

/** Links at the top of every page. */
export const bar = (current: string): string => {
  const link = (to: string, label: string) => `<a href="${to}"${to === current ? ' aria-current="page"' : ""}>${label}</a>`
  return `<nav class="bar" aria-label="Documentation"><b>Custody Data Service</b>${link("/v1/docs", "API reference")}${link("/v1/docs/guides", "Guides")}${link("/v1/docs/errors", "Errors")}${link("/portal/", "Portal")}</nav>`
}

/** A complete page. */
export const page = (title: string, body: string, head = ""): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${Bun.escapeHTML(title)} · Custody Data Service</title>
<link rel="icon" href="/favicon.ico">
<link rel="stylesheet" href="${stylePath}">
${head}</head>
<body>
${body}
</body>
</html>
`
