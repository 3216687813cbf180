/** Values of records: times, numbers, words that mean good or bad, and whatever else JSON can hold. */
import type { ComponentChildren, JSX } from 'preact'
import { agoOf, countOf, plain, timeOf } from '../words.js'
import { None, Text, Unknown } from './text.js'

/** An instant, as local time; the exact one is its title. */
export const Time = ({ at }: { at: string | null | undefined }): JSX.Element =>
  at == null ? (
    <None />
  ) : (
    <time dateTime={at} title={at}>
      {timeOf(at)}
    </time>
  )

/** An instant with how long ago it was, where somebody reads one record and not many. */
export const Moment = ({ at }: { at: string | null | undefined }): JSX.Element =>
  at == null ? (
    <None />
  ) : (
    <>
      <Time at={at} /> <span class="dim">{agoOf(at)}</span>
    </>
  )

export const Count = ({ value }: { value: number | null | undefined }): ComponentChildren =>
  value == null ? <Unknown /> : countOf(value)

/** What each word means for whoever looks at it; the word itself is always there. */
const TONES: Record<string, string> = {
  connected: 'ok',
  disconnected: 'dim',
  active: 'ok',
  idle: 'dim',
  stale: 'warn',
  silent: 'warn',
  closed: 'dim',
  open: 'ok',
  waiting: 'run',
  attempted: 'run',
  acknowledged: 'run',
  resulted: 'ok',
  failed: 'bad',
  expired: 'warn',
  cancelled: 'dim',
  rejected: 'bad',
  refused: 'bad',
  overdue: 'bad',
  superseded: 'warn',
}

export const Word = ({ value }: { value: string | null | undefined }): JSX.Element =>
  value == null ? (
    <None />
  ) : (
    <span class={`word ${TONES[value] ?? ''}`}>
      <Text value={plain(value)} />
    </span>
  )

/** Yes, no, or nobody knows. */
export const Truth = ({ value, yes = 'yes', no = 'no' }: { value: boolean | null; yes?: string; no?: string }) =>
  value === null ? <Unknown /> : value ? yes : no

export const Names = ({ names }: { names: readonly string[] }): JSX.Element =>
  names.length === 0 ? (
    <None />
  ) : (
    <span class="names">
      {names.map((name) => (
        <span key={name}>
          <Text value={name} />
        </span>
      ))}
    </span>
  )

const isInstant = (value: string) => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)

/** Any JSON: what it is shows, and what it holds is text. */
export function Json({ value }: { value: unknown }): ComponentChildren {
  if (value === null || value === undefined) return <None />
  if (typeof value === 'string') return isInstant(value) ? <Moment at={value} /> : <Text value={value} />
  if (typeof value === 'number') return <>{countOf(value)}</>
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>
  const entries = Object.entries(value)
  // Counts by a word, and the like: what is flat needs no braces.
  if (!Array.isArray(value) && entries.every(([, part]) => part === null || typeof part !== 'object'))
    return (
      <span class="names">
        {entries.map(([name, part]) => (
          <span key={name}>
            <span class="dim">
              <Text value={plain(name)} />
            </span>{' '}
            <Json value={part} />
          </span>
        ))}
      </span>
    )
  return (
    <code>
      <Text value={JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ')} />
    </code>
  )
}
