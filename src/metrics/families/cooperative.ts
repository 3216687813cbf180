/** Metrics of cooperative sites: sites, sessions, and open viewer streams. */
import { SESSION_FAMILY, SessionRowAnswer, SessionState } from '../../internal/contract/sessions.js'
import { SITE_FAMILY, SiteMode, SiteRowAnswer } from '../../internal/contract/sites.js'
import { SUBSCRIPTION_FAMILY, SubscriptionRowAnswer } from '../../internal/contract/subscriptions.js'
import { defineMetrics, type Group, type MetricSample, readSample } from '../family.js'

interface Sampled<T> {
  entries: readonly T[]
  sampleSize: number | null
}

/** Counts entries by the values of `field`, including values that no entry has. */
function countsOf<T>(
  name: string,
  values: readonly string[],
  entries: readonly T[],
  of: (entry: T) => string | null,
): MetricSample[] {
  return values.map((value) => {
    return { labels: { [name]: value }, value: entries.filter((entry) => of(entry) === value).length }
  })
}

/** The sum; `null` if one of them is not known. */
const sum = (numbers: readonly (number | null)[]) =>
  numbers.reduce((total, number) => (total === null || number === null ? null : total + number), 0)

const SAMPLE_SIZE = {
  help: 'Entries counted, if these numbers are from a sample; absent if they are exact.',
  read: ({ sampleSize }: Sampled<unknown>) => sampleSize,
}

const SITES = defineMetrics(
  {
    of: 'sites',
    calls: 'sites.listSites',
    read: (sites, scrape) =>
      readSample(
        SITE_FAMILY.capability,
        { entry: SiteRowAnswer, id: 'site_id', list: (page, ctx) => sites.listSites({}, page, ctx) },
        scrape,
      ),
  },
  [
    {
      name: 'relayscope_sites',
      help: 'Declared sites.',
      labels: ['mode'],
      read: ({ entries }) => countsOf('mode', SiteMode.options, entries, ({ mode }) => mode),
    },
    { name: 'relayscope_sites_sample_size', ...SAMPLE_SIZE },
  ],
)

const SESSIONS = defineMetrics(
  {
    of: 'sessions',
    calls: 'sessions.listSessions',
    read: (sessions, scrape) =>
      readSample(
        SESSION_FAMILY.capability,
        { entry: SessionRowAnswer, id: 'session_id', list: (page, ctx) => sessions.listSessions({}, page, ctx) },
        scrape,
      ),
  },
  [
    {
      name: 'relayscope_sessions',
      help: 'Sessions, including retained ended ones.',
      labels: ['state'],
      read: ({ entries }) => countsOf('state', SessionState.options, entries, ({ state }) => state),
    },
    { name: 'relayscope_sessions_sample_size', ...SAMPLE_SIZE },
  ],
)

const SUBSCRIPTIONS = defineMetrics(
  {
    of: 'subscriptions',
    calls: 'subscriptions.listSubscriptions',
    read: (subscriptions, scrape) =>
      readSample(
        SUBSCRIPTION_FAMILY.capability,
        {
          entry: SubscriptionRowAnswer,
          id: 'subscription_id',
          list: (page, ctx) => subscriptions.listSubscriptions({}, page, ctx),
        },
        scrape,
      ),
  },
  [
    {
      name: 'relayscope_subscriptions',
      help: 'Open viewer streams.',
      read: ({ entries }) => entries.length,
    },
    {
      name: 'relayscope_subscriptions_pending_events',
      help: 'Events queued for the readers of these streams.',
      read: ({ entries }) => sum(entries.map(({ pending }) => pending)),
    },
    {
      // Of the streams that are open now: it falls when one ends, so it is no counter.
      name: 'relayscope_subscriptions_dropped_events',
      help: 'Known number of events dropped from these streams.',
      read: ({ entries }) => sum(entries.map(({ dropped }) => dropped)),
    },
    { name: 'relayscope_subscriptions_sample_size', ...SAMPLE_SIZE },
  ],
)

export const COOPERATIVE_GROUPS: readonly Group[] = [SITES, SESSIONS, SUBSCRIPTIONS]
