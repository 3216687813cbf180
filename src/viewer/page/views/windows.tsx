/** Browser windows, and one of them with the contexts in it. */
import type { JSX } from 'preact'
import type { BrowserWindow, WindowState, WindowStatus, WindowType } from '../../../contract/browser-windows.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { choice, flag, text } from '../parts/filters.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { ClientRef, UserRef, WindowRef } from '../parts/ref.js'
import { Count, Time, Word } from '../parts/value.js'
import { CONTEXTS, OWNERSHIPS } from './contexts.js'

const STATUSES: WindowStatus[] = ['open', 'stale', 'closed']
const TYPES: WindowType[] = ['normal', 'popup', 'panel', 'app', 'devtools']
const STATES: WindowState[] = ['normal', 'minimized', 'maximized', 'fullscreen']

export const WINDOWS: ListView<BrowserWindow> = {
  path: '/browser-windows',
  title: 'Windows',
  about: 'Browser windows, and how many workers each holds.',
  source: 'browser_window_registry',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('ownership', OWNERSHIPS),
    choice('status', STATUSES),
    choice('type', TYPES),
    choice('state', STATES),
    flag('focused'),
    flag('incognito'),
    flag('draining'),
  ],
  keyOf: ({ window_id, user_id }) => `${user_id} ${window_id}`,
  markOf: ({ status }) => (status === 'open' ? '' : 'past'),
  columns: [
    { head: 'window', cell: ({ window_id }) => <WindowRef id={window_id} /> },
    { head: 'user_id', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'client_id', cell: (row) => <ClientRef {...row} /> },
    { head: 'status', cell: ({ status }) => <Word value={status} /> },
    { head: 'ownership', cell: ({ ownership }) => ownership },
    { head: 'type', cell: ({ type }) => type },
    { head: 'state', cell: ({ state, focused }) => (focused ? `${state}, focused` : state) },
    { head: 'tabs', cell: ({ tab_count }) => <Count value={tab_count} />, isNumber: true },
    { head: 'workers', cell: ({ worker_count }) => <Count value={worker_count} />, isNumber: true },
    { head: 'busy', cell: ({ busy_count }) => <Count value={busy_count} />, isNumber: true },
    { head: 'idle', cell: ({ idle_count }) => <Count value={idle_count} />, isNumber: true },
    { head: 'capacity', cell: ({ capacity }) => <Count value={capacity} />, isNumber: true },
    { head: 'updated_at', cell: ({ updated_at }) => <Time at={updated_at} /> },
  ],
}

export function WindowPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<BrowserWindow>(path)
  return (
    <>
      <Card isMain title="Window" answer={answer}>
        {(window) => (
          <Fields
            record={window}
            show={{
              user_id: <UserRef id={window.user_id} />,
              client_id: <ClientRef {...window} />,
              status: <Word value={window.status} />,
              capacity: <Count value={window.capacity} />,
              worker_count: <Count value={window.worker_count} />,
              idle_count: <Count value={window.idle_count} />,
              busy_count: <Count value={window.busy_count} />,
            }}
          />
        )}
      </Card>
      {answer.value && (
        <Excerpt view={CONTEXTS} query={{ user_id: answer.value.user_id, window_id: answer.value.window_id }} />
      )}
    </>
  )
}
