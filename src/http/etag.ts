/** What an answer is compared by: a weak entity tag (RFC 9110, 8.8.3), and whether a client has named it. */
import type { Encoded, Member } from './encode.js'
import type { RequestOutcome } from './read.js'

/** The tag of an answer to `question` of which `text` says all that is compared. */
export const weakTag = (question: string, text: string): string => `W/"${digestOf([question, text])}"`

/** Whether `header`, an `If-None-Match`, names `tag`: such a client has the answer. */
export const isNamed = (header: string | null, tag: string): boolean =>
  header?.split(',').some((one) => opaque(one) === opaque(tag)) ?? false

/** Whether it names whatever there is. Nobody knows that there is something before it was read. */
export const isAnyNamed = (header: string | null): boolean => header?.trim() === '*'

/** Whether nothing that its sources hold is left out of an answer, by what it says itself. */
export const isWhole = ({ encoded, complete }: RequestOutcome): boolean =>
  complete !== false && !encoded.members.some(({ name }) => name === 'omitted')

/** A tag without what says that it is weak: that is not compared. */
const opaque = (tag: string) => tag.trim().replace(/^W\//, '')

// A text is read through this window: each of its units takes at most three bytes.
const WINDOW = 16_384
const bytes = new Uint8Array(3 * WINDOW + 12)
const words = new Int32Array(bytes.buffer)
const encoder = new TextEncoder()

/**
 * 64 bits over `texts` in 16 hexadecimal digits: two hashes that rotate and multiply, word by word and every other word in
 * a lane of its own, because unit by unit costs as much as the rest of an answer; text by text, because to join them is a
 * copy more. It notices change and is no authentication. Nobody keeps a tag for long, so that it may become another hash.
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

/** What is read of `text` at once from there on. A pair of surrogates is not parted: each half alone reads as any other. */
function pieceOf(text: string, from: number): string {
  if (text.length <= WINDOW) return text
  const to = from + WINDOW
  return text.slice(from, (text.charCodeAt(to - 1) & 0xfc00) === 0xd800 ? to + 1 : to)
}

/** Each bit of `word` told to all others (the last steps of MurmurHash3). */
function mixed(word: number): number {
  const half = Math.imul(word ^ (word >>> 16), 2246822507)
  const whole = Math.imul(half ^ (half >>> 13), 3266489909)
  return whole ^ (whole >>> 16)
}

/** A record without what changes by the clock alone. */
export type Compared = (record: never) => object

/** The text of a record as it is compared. */
export const comparedRecord = (text: string, of: Compared | undefined): string =>
  of ? JSON.stringify(of(JSON.parse(text) as never)) : text

/** A member as it is compared: not at all where it is the instant of the observation, and without what it cost. */
export function comparedMember(name: string, text: string): string {
  if (name === 'observed_at') return ''
  if (name !== 'completeness') return text
  const { examined, ...known } = (JSON.parse(text) ?? {}) as { examined?: unknown }
  return JSON.stringify(known)
}

const changesByTheClock = ({ name }: Member) => name === 'observed_at' || name === 'completeness'

/**
 * What of an answer is compared. Where all of it is, that is the text: taking it apart costs more.
 *
 * @param of A record of its items without what changes by the clock alone.
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
