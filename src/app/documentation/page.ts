/** The layout of the documentation's pages: one style sheet, one bar of links, one script, no other hosts. */
import { createHash } from "node:crypto"

export const GUIDES = "/v1/docs/guides"
export const ERRORS = "/v1/docs/errors"
export const SEARCH = "/v1/docs/search"

/** A file name with a hash of the content, so that browsers can cache it. */
export const named = (stem: string, extension: string, content: string): string =>
  `/v1/docs/files/${stem}-${createHash("sha256").update(content).digest("hex").slice(0, 10)}.${extension}`

/** The styles of every documentation page except the reference. */
export const style = `:root{color-scheme:light dark;--ink:light-dark(#161b24,#e8ecf2);--soft:light-dark(#545f6e,#9da8b8);--line:light-dark(#e1e5ea,#2a303b);
--back:light-dark(#fff,#0f1217);--raised:light-dark(#f4f6f8,#191e26);--accent:light-dark(#2452c7,#93b4ff)}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.65 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.bar{display:flex;flex-wrap:wrap;gap:.3rem 1.4rem;align-items:center;padding:.75rem 1.5rem;border-bottom:1px solid var(--line)}
.bar b{margin-right:auto}.bar a{color:var(--soft);text-decoration:none}.bar a:hover,.bar a[aria-current]{color:var(--accent)}
.bar input{width:16rem;max-width:100%;padding:.35rem .7rem;border:1px solid var(--line);border-radius:8px;background:var(--raised);color:var(--ink);font:inherit;font-size:.92rem}
.columns{display:grid;grid-template-columns:14rem minmax(0,46rem) 13rem;gap:3rem;max-width:84rem;margin:0 auto;padding:2rem 1.5rem 5rem}
.columns>main{grid-column:2;grid-row:1}.contents{grid-column:3;grid-row:1;min-width:0;position:sticky;top:1.5rem;align-self:start;font-size:.86rem}
.contents h2{margin:0 0 .4rem;font-size:.8rem;color:var(--soft);font-weight:600}.contents ul{list-style:none;margin:0;padding:0}
.contents a{display:block;padding:.15rem 0;color:var(--soft);text-decoration:none}.contents a:hover{color:var(--accent)}
#reference{overflow-x:clip}.results{list-style:none;padding:0}.results li{margin:1.2rem 0}.results p{margin:.1rem 0;color:var(--soft);font-size:.94rem}small{color:var(--soft)}
.guides{position:sticky;top:1.5rem;align-self:start;font-size:.92rem}.guides h2{margin:1.2rem 0 .3rem;font-size:.8rem;color:var(--soft);font-weight:600}
.guides ul{list-style:none;margin:0;padding:0}.guides a{display:block;padding:.2rem .6rem;border-radius:6px;color:var(--ink);text-decoration:none}
.guides a:hover,.guides a[aria-current]{background:var(--raised);color:var(--accent)}
main{min-width:0;overflow-wrap:break-word}main a{color:var(--accent)}h1{font-size:2rem;line-height:1.2;letter-spacing:-.02em;margin:.2rem 0 1rem}
h2{font-size:1.3rem;margin:2.2rem 0 .6rem}h3{font-size:1.05rem;margin:1.6rem 0 .4rem}
code{padding:.1em .35em;border-radius:5px;background:var(--raised);font:.88em ui-monospace,"SF Mono",Menlo,Consolas,monospace}
pre{padding:1rem 1.1rem;border:1px solid var(--line);border-radius:10px;background:var(--raised);overflow-x:auto}pre code{padding:0;background:none}
.code{position:relative}.code button{position:absolute;top:.5rem;right:.5rem;padding:.15rem .6rem;border:1px solid var(--line);border-radius:6px;background:var(--back);color:var(--soft);font:inherit;font-size:.8rem;cursor:pointer}
.code button:hover,.code button:focus-visible{color:var(--accent)}.hljs-comment{color:var(--soft)}.hljs-keyword,.hljs-built_in,.hljs-literal{color:light-dark(#8a2da5,#d2a8ff)}
.hljs-string{color:light-dark(#17703a,#8ddb8c)}.hljs-number{color:light-dark(#9a4a00,#f0b072)}.hljs-attr,.hljs-title,.hljs-variable,.hljs-property{color:light-dark(#1f4fb5,#93b4ff)}
.table{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.94rem}th,td{padding:.45rem .8rem .45rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:3px solid var(--accent);background:var(--raised)}img{max-width:100%}
@media(max-width:1180px){.columns{grid-template-columns:14rem minmax(0,46rem)}.columns>main,.contents{grid-column:2;grid-row:auto}.contents{position:static}.guides{grid-row:1/span 2}.contents ul{columns:2}.contents a{overflow-wrap:anywhere}}
@media(max-width:800px){.columns{grid-template-columns:minmax(0,1fr);gap:1.5rem}.columns>*,.columns>main,.contents{grid-column:1;grid-row:auto}.guides{position:static;order:2}.columns>main{order:1}.bar form{order:1;width:100%}.bar input{width:100%}}`

/** Puts a button on each code block that copies its text. */
export const script = `for (const block of document.querySelectorAll("pre")) {
  const frame = document.createElement("div"), button = document.createElement("button")
  frame.className = "code"
  button.type = "button"
  button.textContent = "Copy"
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent)
    button.textContent = "Copied"
    setTimeout(() => { button.textContent = "Copy" }, 2000)
  })
  block.replaceWith(frame)
  frame.append(block, button)
}
`

/** Where the style sheet and the script are. */
export const stylePath = named("docs", "css", style),
  scriptPath = named("docs", "js", script)

/** Links and the search field at the top of every page. */
export const bar = (current: string, query = ""): string => {
  const link = (to: string, label: string) => `<a href="${to}"${to === current ? ' aria-current="page"' : ""}>${label}</a>`
  return `<nav class="bar" aria-label="Documentation"><b>Custody Data Service</b>${link("/v1/docs", "API reference")}${link(GUIDES, "Guides")}${link(ERRORS, "Errors")}${link("/portal/", "Portal")}<form action="${SEARCH}" role="search"><input type="search" name="q" value="${Bun.escapeHTML(query)}" maxlength="100" placeholder="Search the documentation" aria-label="Search the documentation"></form></nav>`
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
<script defer src="${scriptPath}"></script>
${head}</head>
<body>
${body}
</body>
</html>
`
