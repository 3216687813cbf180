/** The families about what passes through: calls and their replies, and messages that were seen already. */
import { DeduplicatorSummaryAnswer } from '../../internal/contract/deduplicator.js'
import { type ObservedAction, RpcSummaryAnswer } from '../../internal/contract/rpc.js'
import {
  defineMetrics,
  type Group,
  histogramSamples,
  instant,
  type MetricSample,
  samplesBy,
  seconds,
  summaryOf,
} from '../family.js'

/** The number of ends of an action, by outcome. */
function endsOfAction({ action, direction, succeeded, failed, cancelled, unanswered, notifications }: ObservedAction) {
  const ends = Object.entries({ succeeded, failed, cancelled, unanswered, notification: notifications })
  return ends.flatMap(([outcome, value]): MetricSample[] =>
    value === 0 ? [] : [{ labels: { action, direction, outcome }, value }],
  )
}

const CALLS = defineMetrics(
  {
    of: 'rpc',
    calls: 'rpc.summary',
    read: async (rpc, scrape) =>
      rpc.summary && summaryOf('rpc', RpcSummaryAnswer, await rpc.summary(scrape.view.ctx), scrape),
  },
  [
    {
      name: 'relayscope_rpc_pending_calls',
      help: 'Calls without a recorded end, those past their deadline included.',
      read: ({ pending }) => pending,
    },
    {
      name: 'relayscope_rpc_overdue_calls',
      help: 'Those of the pending calls that are past their deadline.',
      read: ({ overdue }) => overdue,
    },
    {
      name: 'relayscope_rpc_oldest_call_age_seconds',
      unit: 'seconds',
      help: 'How long the oldest waiting call has waited.',
      read: ({ oldest_age_ms }) => seconds(oldest_age_ms),
    },
    {
      name: 'relayscope_rpc_calls_opened',
      type: 'counter',
      help: 'Opened calls.',
      read: ({ counters }) => counters?.opened,
    },
    {
      name: 'relayscope_rpc_calls_ended',
      type: 'counter',
      help: 'Ended calls, by outcome.',
      labels: ['outcome'],
      read: ({ counters }) => {
        if (counters === null) return []
        const { succeeded, failed, timed_out, cancelled, unanswered } = counters
        return samplesBy('outcome', { succeeded, failed, timed_out, cancelled, unanswered })
      },
    },
    {
      name: 'relayscope_rpc_observed_calls_ended',
      type: 'counter',
      help: 'Observed calls that ended, and messages that ask for no reply, by action and direction.',
      labels: ['action', 'direction', 'outcome'],
      read: ({ observed }) => observed?.actions.flatMap(endsOfAction) ?? [],
    },
    {
      name: 'relayscope_rpc_observed_call_seconds',
      type: 'histogram',
      unit: 'seconds',
      help: 'Time until observed calls were answered.',
      labels: ['action', 'direction', 'le'],
      read: ({ observed }) =>
        observed?.actions.flatMap(({ action, direction, counts, sum_ms }) =>
          histogramSamples({ action, direction }, observed.bounds_ms, counts, sum_ms),
        ) ?? [],
    },
    {
      name: 'relayscope_rpc_observed_calls_evicted',
      type: 'counter',
      help: 'Observed calls that left as unanswered because too many were open.',
      read: ({ observed }) => observed?.evicted,
    },
    {
      name: 'relayscope_rpc_replies_dropped',
      type: 'counter',
      help: 'Replies without a pending call, or from another client than the called one.',
      labels: ['reason'],
      read: ({ counters }) => counters && samplesBy('reason', { late: counters.late, foreign: counters.foreign }),
    },
    {
      name: 'relayscope_rpc_counting_since_timestamp_seconds',
      unit: 'seconds',
      help: 'Start of counting in seconds since 1970.',
      read: ({ counting_since }) => instant(counting_since),
    },
  ],
)

const MESSAGES = defineMetrics(
  {
    of: 'deduplicator',
    calls: 'deduplicator.summary',
    read: async (deduplicator, scrape) =>
      summaryOf('deduplicator', DeduplicatorSummaryAnswer, await deduplicator.summary(scrape.view.ctx), scrape),
  },
  [
    {
      name: 'relayscope_deduplicator_entries',
      help: 'Messages remembered now.',
      read: ({ entries }) => entries,
    },
    {
      name: 'relayscope_deduplicator_capacity',
      help: 'Maximum number of remembered messages.',
      read: ({ capacity }) => capacity,
    },
    {
      name: 'relayscope_deduplicator_ttl_seconds',
      unit: 'seconds',
      help: 'How long a message is remembered.',
      read: ({ ttl_ms }) => seconds(ttl_ms),
    },
    {
      // A claim that is given back is taken off again: as a counter that would read as a restart.
      name: 'relayscope_deduplicator_accepted_messages',
      help: 'Claims granted and not released, since the deduplicator was created.',
      read: ({ accepted }) => accepted,
    },
    {
      name: 'relayscope_deduplicator_duplicates',
      type: 'counter',
      help: 'Claims refused because the message was already claimed.',
      read: ({ duplicates }) => duplicates,
    },
    {
      name: 'relayscope_deduplicator_evictions',
      type: 'counter',
      help: 'Entries evicted before their expiry because the capacity was reached.',
      read: ({ evicted }) => evicted,
    },
  ],
)

export const TRAFFIC_GROUPS: readonly Group[] = [CALLS, MESSAGES]
