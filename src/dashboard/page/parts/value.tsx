/** Values: times, words that mean good or bad, and whatever else JSON can hold. */
import type { ComponentChildren } from 'preact'
import { agoOf, clock, HINTS, spacedName, timeOf } from '../words.js'
import { Text, Unknown } from './text.js'

interface TimeProps {
  at: string | null | undefined
  /** With how long ago it was, in full; `short` is that alone, in one unit for a table. */
  age?: 'full' | 'short'
}

/** Next to the clock there is a space before it. */
const ageText = (at: string, age: string | undefined) => (age === 'short' ? agoOf(at, true) : ` ${agoOf(at)}`)

/** Ages are so exact. */
const AGE_MS = 10_000
let updated = 0

/** Brings ages up to date where they stand: drawing hundreds of rows for them would keep a core busy. */
export function updateAges(): void {
  const next = Math.floor(clock() / AGE_MS)
  if (next === updated) return
  updated = next
  for (const { dataset, firstChild } of document.querySelectorAll<HTMLElement>('[data-at]')) {
    const text = ageText(dataset.at as string, dataset.age)
    if (firstChild && firstChild.nodeValue !== text) firstChild.nodeValue = text
  }
}

/** An instant in the chosen zone; the exact one is its title. In a table it is an age, with the clock as its title. */
export const Time = ({ at, age }: TimeProps): ComponentChildren =>
  at != null &&
  (age === 'short' ? (
    <time class="age" title={`${timeOf(at)} ${at}`} data-at={at} data-age={age}>
      {agoOf(at, true)}
    </time>
  ) : (
    <>
      <time title={at}>{timeOf(at)}</time>
      {age && (
        <span class="dim age" data-at={at} data-age={age}>
          {ageText(at, age)}
        </span>
      )}
    </>
  ))

/** The colour of each term. The term itself is always shown. */
export const TONES = new Map(
  Object.entries({
    ok: 'connected active open',
    dim: 'disconnected idle closed cancelled resulted succeeded',
    warn: 'stale superseded',
    run: 'waiting attempted acknowledged',
    bad: 'silent failed expired rejected refused overdue deadline_passed timed_out unanswered',
  }).flatMap(([tone, words]) => words.split(' ').map((word): [string, string] => [word, tone])),
)

export const Term = ({ value }: { value: string | null | undefined }): ComponentChildren =>
  value != null && <span class={TONES.get(value)}>{Text({ value: spacedName(value) })}</span>

/** A term, and why it is so. */
export const terms = (value: string | null, reason: string | null | undefined): ComponentChildren => [
  Term({ value }),
  ' ',
  Term({ value: reason }),
]

interface TruthProps {
  value: boolean | null
  yes?: string
  no?: string
}

/** Yes, no, or unknown. */
export const Truth = ({ value, yes = 'yes', no = 'no' }: TruthProps): ComponentChildren =>
  value === null ? <Unknown /> : value ? yes : no

const isInstant = (value: string) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)

/** A flat list or a flat object needs no brackets. */
function flat(value: object): ComponentChildren {
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  if (entries.some(([, part]) => part !== null && typeof part === 'object')) return null
  return (
    <span class="names">
      {entries.length === 0 && '–'}
      {entries.map(([name, part]) => (
        <span key={name}>
          {!isList && (
            <span class="dim">
              <Text value={spacedName(name)} />{' '}
            </span>
          )}
          <Json value={part} />
        </span>
      ))}
    </span>
  )
}

/** Any JSON value. Its content is shown as text. */
export function Json({ value }: { value: unknown }): ComponentChildren {
  if (value == null) return '–'
  if (typeof value === 'string') return isInstant(value) ? <Time at={value} age="full" /> : <Text value={value} />
  // A client's own number may be a port or a process: it is shown as it was given.
  if (typeof value === 'number') return String(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return (
    flat(value) ?? (
      <code>
        <Text value={JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ')} />
      </code>
    )
  )
}

/** Explains a term when it has the focus or the pointer. */
export const hintOf = (name: string) => ({ 'data-hint': HINTS[name], 'aria-description': HINTS[name] })

/** A name that explains itself, if there is an explanation. */
export const Hint = ({ name, label = name }: { name: string; label?: string }): ComponentChildren =>
  HINTS[name] ? (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the explanation must be reached by keys
    <span tabIndex={0} {...hintOf(name)}>
      {label}
    </span>
  ) : (
    label
  )
