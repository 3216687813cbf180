/** What a JSON text would cost to build, counted before anything is built: one pass over its characters, no allocation per value. */
import { JSON_DEPTH } from '../contract/limits.js'

/**
 * Objects and lists of one body. Each costs a hundred bytes of memory and a microsecond wherever it is copied, against
 * the three bytes that it takes on the wire; a message of 64 KiB can still hold whatever it likes.
 */
const CONTAINERS_MAX = 32_768

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d

/** The place of the quote that ends the string which begins behind `from`, or the end of a text that is none. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at
    while (text.charCodeAt(before - 1) === BACKSLASH) before--
    // Two backslashes are one character, and no escape of the quote. None lies before `from`: there is the other quote.
    if ((at - before) % 2 === 0) return at
  }
  return text.length
}

/** The name that a string of the text spells, its escapes undone; what is not a string is left to the parser. */
function spelled(text: string, from: number, to: number): string {
  const raw = text.slice(from, to)
  if (!raw.includes('\\')) return raw
  try {
    return JSON.parse(`"${raw}"`)
  } catch {
    return raw
  }
}

/** Names of one object: few have more than one, and those that have none are asked for no set. */
type Names = string | Set<string> | undefined

/**
 * Why `text` is refused although it may be well-formed: it nests too deep, holds too many objects and lists, or names a
 * member twice (readers differ in which of the two counts). Says nothing of a text that is not well-formed.
 */
export function refuseJsonText(text: string): string | undefined {
  // By depth, 0 outside of everything; `null` in a list.
  const open: (Names | null)[] = [null]
  let containers = 0
  let from = 0
  let to = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      from = i + 1
      to = endOfString(text, from)
      i = to
    } else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      if (open.length > JSON_DEPTH) return `must not nest deeper than ${JSON_DEPTH} levels`
      if (++containers > CONTAINERS_MAX) return `must not hold more than ${CONTAINERS_MAX} objects and lists`
      open.push(code === OPEN_OBJECT ? undefined : null)
    } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
      if (open.length > 1) open.pop()
    } else if (code === COLON) {
      const names = open[open.length - 1]
      // A colon in a list is not well-formed.
      if (names === null) continue
      const name = spelled(text, from, to)
      if (names === undefined) open[open.length - 1] = name
      else if (typeof names === 'string') {
        if (names === name) return 'must not name a member twice'
        open[open.length - 1] = new Set([names, name])
      } else if (names.has(name)) return 'must not name a member twice'
      else names.add(name)
    }
  }
  return undefined
}
