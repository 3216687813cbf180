/** The families about what passes through: calls and their replies, and messages that were seen already. */
import { DeduplicatorSummaryAnswer } from '../../contract/deduplicator.js'
import { RpcSummaryAnswer } from '../../contract/rpc.js'
import { defineMetrics, type Group, instant, samplesBy, seconds, summaryOf } from '../family.js'

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
        const { succeeded, failed, timed_out, cancelled } = counters
        return samplesBy('outcome', { succeeded, failed, timed_out, cancelled })
      },
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
