/** Users, and one of them: all that is known, by source. */
import type { JSX } from 'preact'
import type { UserObservation } from '../../../views/user-observation.js'
import type { UserSummary } from '../../../views/user-summary.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { UserRef } from '../parts/ref.js'
import { extentOf } from '../parts/state.js'
import { Count, Names, Time } from '../parts/value.js'
import { CALLS } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { CONTEXTS } from './contexts.js'
import { SESSIONS } from './sessions.js'
import { STREAMS } from './streams.js'
import { WINDOWS } from './windows.js'

export const USERS: ListView<UserObservation> = {
  path: '/users',
  title: 'Users',
  about: 'Everybody that any source knows, in the order of their ids.',
  filters: [],
  keyOf: ({ user_id }) => user_id,
  columns: [
    { head: 'user', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'connections', cell: (row) => <Count value={row.observed_connections} />, isNumber: true },
    { head: 'contexts', cell: (row) => <Count value={row.observed_contexts} />, isNumber: true },
    { head: 'windows', cell: (row) => <Count value={row.observed_browser_windows} />, isNumber: true },
    { head: 'client types', cell: (row) => <Names names={row.observed_client_types} /> },
    { head: 'actions', cell: (row) => row.observed_action_types.length, isNumber: true },
    { head: 'last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
    { head: 'known to', cell: ({ sources }) => <Names names={sources} /> },
  ],
}

export function UserPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<UserSummary>(path)
  const user_id = decodeURIComponent(path.split('/')[2] ?? '')
  return (
    <>
      <Card isMain title="User" answer={answer}>
        {(user) => (
          <>
            <p class="dim">{user.completeness.complete ? 'Every source was read to its end.' : extentOf(user)}</p>
            <Fields
              record={user}
              show={{
                completeness: null,
                sources: <Names names={user.sources} />,
                observed_connections: <Count value={user.observed_connections} />,
                observed_contexts: <Count value={user.observed_contexts} />,
                observed_browser_windows: <Count value={user.observed_browser_windows} />,
                observed_streams: <Count value={user.observed_streams} />,
                pending_rpc: <Count value={user.pending_rpc} />,
                observed_client_ids: <Names names={user.observed_client_ids} />,
                observed_client_types: <Names names={user.observed_client_types} />,
                observed_action_types: <Names names={user.observed_action_types} />,
              }}
            />
          </>
        )}
      </Card>
      <Excerpt view={CONNECTIONS} query={{ user_id }} />
      <Excerpt view={COMMANDS} query={{ user_id }} />
      <Excerpt view={CALLS} query={{ user_id }} />
      <Excerpt view={CONTEXTS} query={{ user_id }} />
      <Excerpt view={WINDOWS} query={{ user_id }} />
      <Excerpt view={SESSIONS} query={{ owner: user_id }} />
      <Excerpt view={STREAMS} query={{ user_id }} />
    </>
  )
}
