/** Users, and one of them: all that is known, by source. */
import type { JSX } from 'preact'
import type { UserObservation } from '../../../views/user-observation.js'
import type { UserSummary } from '../../../views/user-summary.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/field.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { cutsOf } from '../parts/state.js'
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

const OfUser = ({ user_id }: { user_id: string }): JSX.Element => (
  <>
    <Excerpt view={CONNECTIONS} query={{ user_id }} />
    <Excerpt view={COMMANDS} query={{ user_id }} />
    <Excerpt view={CALLS} query={{ user_id }} />
    <Excerpt view={CONTEXTS} query={{ user_id }} />
    <Excerpt view={WINDOWS} query={{ user_id }} />
    <Excerpt view={SESSIONS} query={{ owner: user_id }} />
    <Excerpt view={STREAMS} query={{ user_id }} />
  </>
)

export function UserPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<UserSummary>(path)
  const user_id = answer.value?.user_id
  return (
    <>
      <Card isMain title="User" answer={answer}>
        {(user) => (
          <>
            <p class="dim">{cutsOf(user).join(' · ') || 'Every source was read to its end.'}</p>
            <Fields record={user} show={{ completeness: null }} />
          </>
        )}
      </Card>
      {user_id !== undefined && <OfUser user_id={user_id} />}
    </>
  )
}
