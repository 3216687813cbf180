/** Users, and one of them: all that is known, by source. */

import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type { ContextAnswer } from '../../../internal/contract/contexts.js'
import type { DeliveryCommandAnswer } from '../../../internal/contract/delivery.js'
import type { EndedCallAnswer, PendingCallAnswer } from '../../../internal/contract/rpc.js'
import type { UserObservation, UserSummary } from '../../../internal/views/user-observation.js'
import { UserAxis } from '../charts/user-axis.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/field.js'
import { text } from '../parts/filters.js'
import { EXCERPT, Excerpt, excerptPath, type Listed, type ListView } from '../parts/list.js'
import { Absent, State, truncationsOf } from '../parts/state.js'
import { countOf, labelOf } from '../words.js'
import { CALLS, ENDED_CALLS } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { CONTEXTS } from './contexts.js'
import { SESSIONS } from './sessions.js'
import { STREAMS } from './streams.js'
import { WINDOWS } from './windows.js'

export const USERS: ListView<UserObservation> = {
  path: '/users',
  title: 'Users',
  about: 'Every user that a source knows, by id.',
  filters: [text('user_id_prefix')],
  keyOf: ({ user_id }) => user_id,
  columns: [
    'user_id',
    'observed_connections',
    'observed_contexts',
    'observed_browser_windows',
    'observed_client_types',
    'observed_action_types',
    'last_seen_at',
    'sources',
  ],
}

// biome-ignore lint/suspicious/noExplicitAny: the records of a list are its own matter
const PARTS: readonly ListView<any>[] = [
  CALLS,
  COMMANDS,
  CONNECTIONS,
  ENDED_CALLS,
  CONTEXTS,
  WINDOWS,
  SESSIONS,
  STREAMS,
]

/** The filter for what is connected; `null` while the newest connections show all: those of a busy client hide others. */
function useConnected(user_id: string): Record<string, string> | null {
  const { value } = useAnswer<Listed<ConnectionAnswer>>(excerptPath(CONNECTIONS, { user_id }))
  return value?.has_more ? { user_id, status: 'connected' } : null
}

const CONNECTED: ListView<ConnectionAnswer> = { ...CONNECTIONS, title: 'Connected' }

/** Where the newest connections are too many, those that are connected. */
function Connections({ user_id }: { user_id: string }): JSX.Element {
  const connected = useConnected(user_id)
  return <Excerpt view={connected ? CONNECTED : CONNECTIONS} query={connected ?? { user_id }} />
}

/** The newest records of the tables below on one axis: the answers are shared with them. */
function Hour({ user_id }: { user_id: string }): JSX.Element | null {
  const of = <T,>(view: ListView<T>) => ({ view, ...useAnswer<Listed<T>>(excerptPath(view, { user_id })) })
  const connections = of<ConnectionAnswer>(CONNECTIONS)
  const commands = of<DeliveryCommandAnswer>(COMMANDS)
  const calls = of<PendingCallAnswer>(CALLS)
  const ended = of<EndedCallAnswer>(ENDED_CALLS)
  const contexts = of<ContextAnswer>(CONTEXTS)
  const query = useConnected(user_id)
  const connected = useAnswer<Listed<ConnectionAnswer>>(query && excerptPath(CONNECTIONS, query)).value?.items ?? []
  const newest = connections.value?.items ?? []
  const older = connected.filter((one) => !newest.some(({ connection_id }) => connection_id === one.connection_id))
  const all = [connections, commands, calls, ended, contexts]
  const loading = all.find(({ value, problem }) => !value && !problem)
  const cut = all.filter(({ value }) => value?.has_more)
  const missing = all.filter(({ value, problem }) => value === null && problem?.status !== 501)
  return (
    <section class={all.some(({ isOld }) => isOld) ? 'old' : ''} aria-label="The last hour">
      {loading ? (
        <State answer={loading as never} />
      ) : (
        <>
          {cut.length > 0 && (
            <p class="dim">
              Only the newest {EXCERPT}: {cut.map(({ view }) => view.title).join(', ')}.
            </p>
          )}
          {missing.length > 0 && <p class="dim">Not read: {missing.map(({ view }) => view.title).join(', ')}.</p>}
          <UserAxis
            connections={[...newest, ...older]}
            commands={commands.value?.items ?? []}
            calls={[...(calls.value?.items ?? []), ...(ended.value?.items ?? [])]}
            contexts={contexts.value?.items ?? []}
          />
        </>
      )}
    </section>
  )
}

/** What the sources count of a user, in words. */
function countsOf(user: UserSummary): string {
  const numbers = Object.entries(user)
    .filter((pair): pair is [string, number] => typeof pair[1] === 'number')
    .map(([name, count]) => `${countOf(count)} ${labelOf(name).replace(/ count$/, 's')}`)
  const extent = truncationsOf(user).join(' · ') || 'every source was read to its end'
  return numbers.length > 0 ? `${numbers.join(', ')} · ${extent}` : extent
}

export function UserPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<UserSummary>(path)
  const user_id = answer.value?.user_id
  return (
    <>
      <Card isMain title={user_id ?? 'User'} answer={answer} class="user">
        {(user) => (
          <>
            <Hour user_id={user.user_id} />
            <p class="dim">{countsOf(user)}</p>
            <details>
              <summary>All fields</summary>
              <Fields record={user} show={{ completeness: null }} />
            </details>
          </>
        )}
      </Card>
      {user_id !== undefined &&
        PARTS.map((view) =>
          view === CONNECTIONS ? (
            <Connections key={view.path} user_id={user_id} />
          ) : (
            <Excerpt key={view.path} view={view} query={{ [view === SESSIONS ? 'owner' : 'user_id']: user_id }} />
          ),
        )}
      <Absent views={PARTS} />
    </>
  )
}
