/** Keys that stand twice in an object of a JSON text: `JSON.parse` keeps the last value and says nothing. Custody records, rule 3. */

/** Strings and punctuation: whatever else is in a JSON text has no keys. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],]/g

/** An open object with its keys so far and whether a key follows; null for an open array. */
type Open = { readonly keys: Set<string>; keyFollows: boolean } | null

/**
 * The first repeated key of each element of a JSON array, or of the one value at 0, by the element's index. `json` has been parsed,
 * so its form is right.
 */
export const repeatedKeys = (json: string): ReadonlyMap<number, string> => {
  const found = new Map<number, string>()
  const open: Array<Open> = []
  let element = 0
  for (const [token] of json.matchAll(TOKEN)) {
    const inside = open.at(-1)
    if (token === "{") open.push({ keys: new Set(), keyFollows: true })
    else if (token === "[") open.push(null)
    else if (token === "}" || token === "]") open.pop()
    else if (token === ",") {
      if (inside != null) inside.keyFollows = true
      else if (open.length === 1) element++
    } else if (inside?.keyFollows === true) {
      inside.keyFollows = false
      const key: string = token.includes("\\") ? JSON.parse(token) : token.slice(1, -1)
      if (inside.keys.has(key) && !found.has(element)) found.set(element, key)
      inside.keys.add(key)
    }
  }
  return found
}
