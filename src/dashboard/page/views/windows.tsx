/** Browser windows, and one of them with the contexts in it. */
import type { JSX } from 'preact'
import type {
  BrowserWindowAnswer,
  WindowState,
  WindowStatus,
  WindowType,
} from '../../../internal/contract/browser-windows.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields, idOf, whoOf } from '../parts/field.js'
import { choice, flag, ORDER, OWNERSHIPS, text } from '../parts/filters.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { CONTEXTS } from './contexts.js'

const STATUSES: WindowStatus[] = ['open', 'stale', 'closed']
const TYPES: WindowType[] = ['normal', 'popup', 'panel', 'app', 'devtools']
const STATES: WindowState[] = ['normal', 'minimized', 'maximized', 'fullscreen']

export const WINDOWS: ListView<BrowserWindowAnswer> = {
  path: '/browser-windows',
  title: 'Windows',
  about: 'Each as its client last reported it.',
  countedBy: '/browser-windows/count',
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
    ORDER,
  ],
  keyOf: ({ window_id, user_id }) => `${user_id} ${window_id}`,
  markOf: ({ status }) => (status === 'open' ? '' : 'past'),
  presets: [
    ['open', { status: 'open' }],
    ['stale', { status: 'stale' }],
  ],
  columns: [
    whoOf('window_id'),
    'status',
    'updated_at',
    'ownership',
    'type',
    'state',
    'focused',
    'draining',
    'tab_count',
    'worker_count',
    'busy_count',
    'idle_count',
    'capacity',
    'counts_source',
    idOf('window_id'),
  ],
}

export function WindowPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<BrowserWindowAnswer>(path)
  const { value } = answer
  return (
    <>
      <Card isMain title="Window" answer={answer}>
        {(window) => <Fields record={window} />}
      </Card>
      {value && <Excerpt view={CONTEXTS} query={{ user_id: value.user_id, window_id: value.window_id }} />}
    </>
  )
}
