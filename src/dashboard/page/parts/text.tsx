/** What a client has written: always text, and what would not be seen, or would turn the rest around, shows itself. */
import type { ComponentChildren } from 'preact'
import { nameOfUnseen, UNSEEN } from '../../../internal/contract/unseen.js'

// Nothing unseen, and nothing that runs the other way.
const PLAIN = /^[ -~]*$/
/** Emoji that are joined to one by U+200D, as families are: the joiner between two of them hides nothing. */
const isJoiner = (before: string, after: string) =>
  /\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*$/u.test(before) && /^\p{Extended_Pictographic}/u.test(after)

function* partsOf(value: string): Generator<string | { unseen: string }> {
  let from = 0
  for (const { 0: found, index } of value.matchAll(UNSEEN)) {
    if (found === '\u200d' && isJoiner(value.slice(Math.max(0, index - 8), index), value.slice(index + 1))) continue
    yield value.slice(from, index)
    yield { unseen: nameOfUnseen(found) }
    from = index + found.length
  }
  yield value.slice(from)
}

/** `value` with each unseen character as a mark of its own. */
export function Text({ value }: { value: string }): ComponentChildren {
  // A link must have something to click.
  if (value !== '' && value.trim() === '') return <span class="unseen">{value.length} × U+0020</span>
  if (PLAIN.test(value)) return value
  const parts = [...partsOf(value)]
  return <bdi>{parts.map((part) => (typeof part === 'string' ? part : <span class="unseen">{part.unseen}</span>))}</bdi>
}

/** The same where only text can stand, as in the title of a tab. */
export const plainText = (value: string) =>
  [...partsOf(value)].map((part) => (typeof part === 'string' ? part : part.unseen)).join('')

/** An unknown value. */
export const Unknown = () => <span class="unknown">unknown</span>
