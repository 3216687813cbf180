/** Execution contexts, and one of them. */
import type { JSX } from 'preact'
import type { Context, ContextStatus, Ownership } from '../../../contract/contexts.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { choice, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { ClientRef, ContextRef, InstanceRef, TaskRef, UserRef, WindowRef } from '../parts/ref.js'
import { Time, Word } from '../parts/value.js'
import { CLIENT_TYPES } from './connections.js'

const STATUSES: ContextStatus[] = ['active', 'idle', 'closed', 'stale']
export const OWNERSHIPS: Ownership[] = ['user-owned', 'worker']

export const CONTEXTS: ListView<Context> = {
  path: '/contexts',
  title: 'Contexts',
  about: 'Where things run: tabs, console flows, workers. Each in its current state, as its client last reported it.',
  source: 'context_registry',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('client_type', CLIENT_TYPES),
    choice('status', STATUSES),
    choice('ownership', OWNERSHIPS),
    text('window_id'),
  ],
  keyOf: ({ context_id, user_id }) => `${user_id} ${context_id}`,
  markOf: ({ status }) => (status === 'closed' || status === 'stale' ? 'past' : ''),
  columns: [
    { head: 'context', cell: ({ context_id }) => <ContextRef id={context_id} /> },
    { head: 'user_id', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'client_id', cell: (row) => <ClientRef {...row} /> },
    { head: 'client_type', cell: ({ client_type }) => client_type },
    { head: 'status', cell: ({ status }) => <Word value={status} /> },
    { head: 'ownership', cell: ({ ownership }) => ownership },
    { head: 'task', cell: (row) => <TaskRef {...row} /> },
    { head: 'window_id', cell: ({ window_id }) => <WindowRef id={window_id} /> },
    { head: 'updated_at', cell: ({ updated_at }) => <Time at={updated_at} /> },
  ],
}

export function ContextPage({ path }: { path: string }): JSX.Element {
  return (
    <Card isMain title="Context" answer={useAnswer<Context>(path)}>
      {(context) => (
        <Fields
          record={context}
          show={{
            user_id: <UserRef id={context.user_id} />,
            client_id: <ClientRef {...context} />,
            instance_id: context.instance_id && <InstanceRef {...context} />,
            status: <Word value={context.status} />,
            window_id: <WindowRef id={context.window_id} />,
            task_id: <TaskRef {...context} />,
          }}
        />
      )}
    </Card>
  )
}
