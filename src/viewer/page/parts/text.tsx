/** What a client has written: always text, and what would not be seen, or would turn the rest around, shows itself. */
import type { ComponentChildren, JSX } from 'preact'

// Controls, format characters (bidi among them), separators of lines, private and unpaired ones.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu

const nameOf = (character: string) =>
  `U+${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`

/** `value` with each unseen character as a mark of its own. */
export function Text({ value }: { value: string }): JSX.Element {
  const parts: ComponentChildren[] = []
  let from = 0
  for (const found of value.matchAll(UNSEEN)) {
    parts.push(value.slice(from, found.index), <span class="unseen">{nameOf(found[0])}</span>)
    from = found.index + found[0].length
  }
  return <bdi>{from === 0 ? value : [...parts, value.slice(from)]}</bdi>
}

/** What nobody knows. */
export const Unknown = () => <span class="unknown">unknown</span>

/** What is not there, as far as is known. */
export const None = () => <span class="none">–</span>
