/** What a client has written: always text, and what would not be seen, or would turn the rest around, shows itself. */
import type { ComponentChildren } from 'preact'
import { nameOfUnseen, UNSEEN } from '../../../contract/unseen.js'

// Nothing unseen, and nothing that runs the other way.
const PLAIN = /^[ -~]*$/

/** `value` with each unseen character as a mark of its own. */
export function Text({ value }: { value: string }): ComponentChildren {
  if (PLAIN.test(value)) return value
  const parts: ComponentChildren[] = []
  let from = 0
  for (const found of value.matchAll(UNSEEN)) {
    parts.push(value.slice(from, found.index), <span class="unseen">{nameOfUnseen(found[0])}</span>)
    from = found.index + found[0].length
  }
  return (
    <bdi>
      {parts}
      {value.slice(from)}
    </bdi>
  )
}

/** What nobody knows. */
export const Unknown = () => <span class="unknown">unknown</span>
