/** How each field of the API is shown, by its name: in tables, on the page of one record, as evidence. One name, one look. */
import type { ComponentChildren } from 'preact'
import { AGES } from '../../../internal/contract/ages.js'
import { hrefOf } from '../address.js'
import { useLook } from '../hooks.js'
import { countOf, durationText, labelOf } from '../words.js'
import { copyText } from './copy.js'
import { plainText, Text, Unknown } from './text.js'
import { Hint, Json, Term, Time } from './value.js'

/** A record of the API, of which a field may need others to say where it leads. */
type Shown = Readonly<Record<string, unknown>>
// biome-ignore lint/suspicious/noExplicitAny: which fields a record has, its name for one of them says
type Way = (id: string, record: any) => string

const encoded = encodeURIComponent
const below =
  (path: string, end = ''): Way =>
  (id) =>
    hrefOf(`${path}/${encoded(id)}${end}`)
const listed =
  (path: string, name: string): Way =>
  (id) =>
    hrefOf(path, { [name]: id })

const user = below('/users', '/summary')
const node = listed('/connections', 'node_id')

/** The host's page of a trace, with `{trace_id}` in it. */
const TRACE_URL = document.documentElement.dataset.trace

/** Links of ids to the pages about them. */
const WAYS: Readonly<Record<string, Way>> = {
  user_id: user,
  owner: user,
  connection_id: below('/connections'),
  // A client is one of one user only, and so is what it runs.
  client_id: (client_id, { user_id }) => hrefOf('/connections', { user_id, client_id }),
  instance_id: (id, { user_id, client_id }) => hrefOf(`/rpc/instances/${encoded(id)}`, { user_id, client_id }),
  command_id(command_id, { user_id, client_id, admission }) {
    // Commands without a user are identified by their scope.
    const scope = admission?.scope_id
    return hrefOf('/delivery/status', { user_id: user_id ?? scope, client_id: client_id ?? scope, command_id })
  },
  task_id: (id, { user_id }) => hrefOf(`/workers/tasks/${encoded(id)}`, { user_id }),
  context_id: below('/contexts'),
  window_id: below('/browser-windows'),
  correlation_id: (id, record) => hrefOf(`/rpc/${'ended_at' in record ? 'ended' : 'pending'}/${encoded(id)}`),
  site_id: below('/sites'),
  session_id: below('/sessions'),
  node_id: node,
  last_node_id: node,
  scope_id: listed('/delivery/commands', 'scope_id'),
  stream: listed('/history/messages', 'stream'),
  ...(TRACE_URL && { trace_id: (id) => TRACE_URL.replaceAll('{trace_id}', encoded(id)) }),
}

const WORDS = /^(status|state|event|ended_reason|status_reason|reason|(last_)?outcome)$/
/** Fields whose `null` means unknown rather than absent. */
const UNKNOWN =
  /_count$|^observed_[cbsu]|^pending_rpc$|^(capacity|focused|type|state|incognito|draining)$|^viewers$|^shares$|^sessions$|_alive$|_connected$|^stale|_waiters$|_drainers$/

/** Where the page is of `record`, whose id is the field `name`. */
export const hrefOfRecord = (name: string, record: Shown): string => WAYS[name]?.(String(record[name]), record) ?? '#/'

interface FieldProps {
  name: string
  record: Shown
  /** A table has less room than the page of one record. */
  isLong?: boolean
}

/** Visible characters at the end of a long id, where similar ids often differ. */
const TAIL = 8

/** An id that leads somewhere; where there is no room for it, it is cut in its middle. */
const Id = ({ value, href }: { value: string; href: string }): ComponentChildren => {
  if (value.length <= 20) return <a href={href}>{Text({ value })}</a>
  if (!/^[!-~]+$/.test(value))
    return (
      <a href={href} title={value} class="long">
        {Text({ value })}
      </a>
    )
  return (
    <a
      href={href}
      // Another page opens in another tab.
      target={href[0] === '#' ? '' : '_blank'}
      title={value}
      class="long cut"
      data-tail={value.slice(-TAIL)}
      aria-label={value}
    >
      {/* Whole, so that a selection copies it in one piece: its end is drawn apart. */}
      <span>
        {value.slice(0, -TAIL)}
        <i>{value.slice(-TAIL)}</i>
      </span>
    </a>
  )
}

export function Field({ name, record, isLong = false }: FieldProps): ComponentChildren {
  const value = record[name]
  // What is not there the style says: a long table has hundreds of those.
  if (value == null) return UNKNOWN.test(name) && Unknown()
  const way = Object.hasOwn(WAYS, name) && WAYS[name]
  if (way && typeof value === 'string') return Id({ value, href: way(value, record) })
  if (WORDS.test(name)) return Term({ value: String(value) })
  if (AGES.includes(name)) return <Age record={record} name={name} />
  if (typeof value === 'number') return name.endsWith('_ms') ? durationText(value) : countOf(value)
  if (name.endsWith('_at')) return Time({ at: String(value), age: isLong ? 'full' : 'short' })
  return <Json value={value} />
}

/**
 * The first column of a list: whose the record is, as its user and its client. It opens the record, whose id is the field
 * `name`.
 */
export const whoOf = (name: string) => ({
  head: 'who',
  cell(record: object): ComponentChildren {
    const row = record as Shown
    const id = String(row[name])
    const { user_id = row.owner, client_id } = row
    const [user, client] = [user_id, client_id].map((part) => (typeof part === 'string' ? part : null))
    return (
      <a
        class="who"
        href={hrefOfRecord(name, row)}
        title={id}
        aria-label={plainText(`${[user ?? 'unknown', client].filter((part) => part !== null).join(' / ')} ${id}`)}
      >
        {user == null ? Unknown() : Text({ value: user })}
        {client != null && <span class="dim"> / {Text({ value: client })}</span>}
      </a>
    )
  },
})

/** The last column of a list: the end of an id, with its copy. */
export const idOf = (name: string) => ({
  head: labelOf(name),
  cell(record: object): ComponentChildren {
    const id = String((record as Shown)[name])
    return (
      <span class="id" title={id}>
        {Text({ value: id.length > TAIL + 1 ? `…${id.slice(-TAIL)}` : id })}
        <button type="button" class="copy-id" aria-label={`copy ${id}`} onClick={() => void copyText(id)}>
          ⧉
        </button>
      </span>
    )
  },
})

/** An age, which grows while nothing else of its record changes. */
const Age = ({ record, name }: { record: Shown; name: string }) =>
  useLook(() => [durationText(Number(record[name]))])[0]

interface FieldsProps<T> {
  record: T
  /** What is not as its name says; `null` leaves it out. */
  show?: { readonly [Name in keyof T]?: ComponentChildren }
}

/** Every field of one record, each under its name. */
export function Fields<T extends object>({ record, show = {} }: FieldsProps<T>): ComponentChildren {
  return (
    <dl class="fields">
      {(Object.keys(record) as (keyof T & string)[]).map(
        (name) =>
          show[name] !== null && (
            <div key={name}>
              <dt>
                <Hint name={labelOf(name)} />
              </dt>
              <dd>{show[name] ?? <Field name={name} record={record as Shown} isLong />}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
