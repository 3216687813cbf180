/** Metrics of connections, connection churn, contexts and browser windows. */
import { BROWSER_WINDOW_FAMILY, BrowserWindowAnswer } from '../../internal/contract/browser-windows.js'
import {
  CONNECTION_FAMILY,
  ConnectionAnswer,
  ConnectionChurnAnswer,
  type ConnectionFilter,
  MINUTE_MS,
  minuteOf,
  type RegistryInspector,
} from '../../internal/contract/connections.js'
import { CONTEXT_FAMILY, ContextAnswer } from '../../internal/contract/contexts.js'
import { Counters } from '../../internal/contract/delivery.js'
import { BrowserWindowCount, ConnectionCount, ContextCount } from '../../internal/views/counts.js'
import { counted, defineMetrics, type Group, instant, type Scrape, samplesBy } from '../family.js'

const BY_CONNECTION = ConnectionCount.pick({ by_status: true, by_client_type: true })
const BY_CONTEXT = ContextCount.pick({ by_status: true, by_ownership: true })
const BY_WINDOW = BrowserWindowCount.pick({ by_status: true })

/** A number that is exact has none. */
const SAMPLE_SIZE = { read: ({ sampleSize }: { sampleSize: number | null }) => sampleSize }
const sampleOf = (what: string) => `${what} counted, if these numbers are from a sample; absent if they are exact.`

const connectionsUnder = (filter: ConnectionFilter) => ({
  of: 'registry' as const,
  calls: 'registry.countConnections or registry.listConnections',
  read: (registry: RegistryInspector, scrape: Scrape) =>
    counted(
      'registry',
      CONNECTION_FAMILY.counted,
      {
        exact: () => registry.countConnections?.(filter, scrape.view.ctx),
        counts: BY_CONNECTION,
        entry: ConnectionAnswer,
        id: 'connection_id',
        list: (page, ctx) => registry.listConnections(filter, page, ctx),
      },
      scrape,
    ),
})

const CONNECTIONS = defineMetrics(connectionsUnder({}), [
  {
    name: 'relayscope_connections',
    help: 'Connections, including retained ended ones.',
    labels: ['status'],
    read: ({ counts }) => samplesBy('status', counts.by_status),
  },
  { name: 'relayscope_connections_sample_size', help: sampleOf('Connections'), ...SAMPLE_SIZE },
])

const CONNECTED = defineMetrics(connectionsUnder({ status: 'connected' }), [
  {
    name: 'relayscope_connections_by_client_type',
    help: 'Connected connections by the type of their client.',
    labels: ['client_type'],
    read: ({ counts }) => samplesBy('client_type', counts.by_client_type),
  },
])

const CHURN = defineMetrics(
  {
    of: 'registry',
    calls: 'registry.connectionChurn',
    async read(registry, { view }) {
      if (!registry.connectionChurn) return undefined
      const { items, observed_at } = ConnectionChurnAnswer.parse(await registry.connectionChurn({}, view.ctx))
      const now = observed_at === null ? view.now() : Date.parse(observed_at)
      // The current minute is incomplete and would appear as a dip.
      const last = (minuteOf(now) - 1) * MINUTE_MS
      return { value: items.find(({ minute }) => Date.parse(minute) === last) ?? null, complete: true }
    },
  },
  [
    {
      name: 'relayscope_connections_last_minute_opened',
      help: 'Connections opened in the last whole minute.',
      read: (minute) => minute?.opened,
    },
    {
      name: 'relayscope_connections_last_minute_ended',
      help: 'Connections that ended in the last whole minute, by reason.',
      labels: ['reason'],
      read: (minute) => samplesBy('reason', Counters.parse(minute?.ended ?? {})),
    },
    {
      name: 'relayscope_connections_last_minute_timestamp_seconds',
      unit: 'seconds',
      help: 'Start of that minute in seconds since 1970; absent if the minute was not observed.',
      read: (minute) => instant(minute?.minute ?? null),
    },
  ],
)

const CONTEXTS = defineMetrics(
  {
    of: 'contextRegistry',
    calls: 'contextRegistry.countContexts or contextRegistry.listContexts',
    read: (contexts, scrape) =>
      counted(
        'context_registry',
        CONTEXT_FAMILY.counted,
        {
          exact: () => contexts.countContexts?.({}, scrape.view.ctx),
          counts: BY_CONTEXT,
          entry: ContextAnswer,
          id: 'context_id',
          list: (page, ctx) => contexts.listContexts({}, page, ctx),
        },
        scrape,
      ),
  },
  [
    {
      name: 'relayscope_contexts',
      help: 'Execution contexts in their current state.',
      labels: ['status'],
      read: ({ counts }) => samplesBy('status', counts.by_status),
    },
    {
      name: 'relayscope_contexts_by_ownership',
      help: 'The same contexts by ownership.',
      labels: ['ownership'],
      read: ({ counts }) => samplesBy('ownership', counts.by_ownership),
    },
    { name: 'relayscope_contexts_sample_size', help: sampleOf('Contexts'), ...SAMPLE_SIZE },
  ],
)

const WINDOWS = defineMetrics(
  {
    of: 'browserWindowRegistry',
    calls: 'browserWindowRegistry.countBrowserWindows or browserWindowRegistry.listBrowserWindows',
    read: (windows, scrape) =>
      counted(
        'browser_window_registry',
        BROWSER_WINDOW_FAMILY.counted,
        {
          exact: () => windows.countBrowserWindows?.({}, scrape.view.ctx),
          counts: BY_WINDOW,
          entry: BrowserWindowAnswer,
          id: 'window_id',
          list: (page, ctx) => windows.listBrowserWindows({}, page, ctx),
        },
        scrape,
      ),
  },
  [
    {
      name: 'relayscope_browser_windows',
      help: 'Browser windows in their current state.',
      labels: ['status'],
      read: ({ counts }) => samplesBy('status', counts.by_status),
    },
    { name: 'relayscope_browser_windows_sample_size', help: sampleOf('Windows'), ...SAMPLE_SIZE },
  ],
)

export const PRESENCE_GROUPS: readonly Group[] = [CONNECTIONS, CONNECTED, CHURN, CONTEXTS, WINDOWS]
