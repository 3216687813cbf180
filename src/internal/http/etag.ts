/** Weak entity tags (RFC 9110, 8.8.3) and `If-None-Match`. */
import type { Encoded, Member } from './encode.js'
import type { RequestOutcome } from './read.js'

/** Returns the tag of a response to `question`; `text` is its compared part. */
export const weakTag = (question: string, text: string): string => `W/"${digestOf([question, text])}"`

/** Whether `header`, an `If-None-Match`, contains `tag`: the client then has the current response. */
export const isNamed = (header: string | null, tag: string): boolean =>
  header?.split(',').some((one) => opaque(one) === opaque(tag)) ?? false

/** Whether the header is `*`. Whether anything exists is only known after reading. */
export const isAnyNamed = (header: string | null): boolean => header?.trim() === '*'

/** Whether a response is complete, as it reports itself. */
export const isWhole = ({ encoded, complete }: RequestOutcome): boolean =>
  complete !== false && !encoded.members.some(({ name }) => name === 'omitted')

/** The tag without its weakness prefix, which is not compared. */
const opaque = (tag: string) => tag.trim().replace(/^W\//, '')

// A text is read through this window: each of its units takes at most three bytes.
const WINDOW = 16_384
const bytes = new Uint8Array(3 * WINDOW + 12)
const words = new Int32Array(bytes.buffer)
const encoder = new TextEncoder()

/**
 * A 64-bit hash over `texts` as 16 hexadecimal digits: two multiply-rotate hashes over alternating words, because
 * hashing unit by unit would cost as much as the rest of a response, and joining the texts would cost a copy. It
 * detects change and is no authentication. Tags are short-lived, so the hash may change between versions.
 */
function digestOf(texts: readonly string[]): string {
  let [a, b, c, d] = [0xdeadbeef, 0x41c6ce57, 0x9e3779b9, 0x7f4a7c15]
  for (const text of texts)
    for (let from = 0; from < text.length; ) {
      const { read, written } = encoder.encodeInto(pieceOf(text, from), bytes)
      from += read
      bytes.fill(0, written, written + 8)
      for (let i = 0; i << 2 < written; i += 2) {
        const even = words[i] as number
        const odd = words[i + 1] as number
        a = Math.imul(((a << 13) | (a >>> 19)) ^ even, 2654435761)
        b = Math.imul(((b << 17) | (b >>> 15)) ^ even, 1597334677)
        c = Math.imul(((c << 13) | (c >>> 19)) ^ odd, 2654435761)
        d = Math.imul(((d << 17) | (d >>> 15)) ^ odd, 1597334677)
      }
      a = Math.imul(a ^ written, 2246822507)
    }
  const high = mixed(mixed(a) + c) ^ mixed(b + d)
  const low = mixed(mixed(b) + d) ^ mixed(high + c)
  return (high >>> 0).toString(16).padStart(8, '0') + (low >>> 0).toString(16).padStart(8, '0')
}

/** Reads the next word of `text` from `from`. Surrogate pairs are read as one unit. */
function pieceOf(text: string, from: number): string {
  if (text.length <= WINDOW) return text
  const to = from + WINDOW
  return text.slice(from, (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 ? to + 1 : to)
}

/** Spreads each bit of `word` to all others (the final steps of MurmurHash3). */
function mixed(word: number): number {
  const half = Math.imul(word ^ (word >>> 16), 2246822507)
  const whole = Math.imul(half ^ (half >>> 13), 3266489909)
  return whole ^ (whole >>> 16)
}

/** A record without what changes by the clock alone. */
export type Compared = (record: never) => object

/** The text of a record as it is compared. */
const comparedRecord = (text: string, of: Compared | undefined): string =>
  of ? JSON.stringify(of(JSON.parse(text) as never)) : text

/** The compared form of a member: `observed_at` is left out, and the examined counts are removed. */
function comparedMember(name: string, text: string): string {
  if (name === 'observed_at') return ''
  if (name !== 'completeness') return text
  const { examined, ...known } = (JSON.parse(text) ?? {}) as { examined?: unknown }
  return JSON.stringify(known)
}

const changesByTheClock = ({ name }: Member) => name === 'observed_at' || name === 'completeness'

/**
 * The compared part of a response; the whole text if nothing is left out, because splitting it costs more.
 *
 * @param of Returns a record of the list without fields that change only by the clock.
 */
export function comparedText({ members, text }: Encoded, of?: Compared): string {
  const parts = members.length > 0 ? members : membersOf(text)
  if (!of && !parts.some(changesByTheClock)) return text
  const compared = parts.map(({ name, value }) => [
    name,
    typeof value === 'string'
      ? comparedMember(name, value)
      : value.map((record) => comparedRecord(record.text, name === 'items' ? of : undefined)),
  ])
  return JSON.stringify(compared)
}

const membersOf = (text: string): Member[] =>
  Object.entries(JSON.parse(text) as object).map(([name, value]) => ({ name, value: JSON.stringify(value) }))
