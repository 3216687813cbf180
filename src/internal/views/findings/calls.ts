/** Findings about observed calls: a client that answers nothing, a call that was passed over, and calls that were lost. */
import { PAGE_MAX } from '../../contract/limits.js'
import type { InspectionContext, PageQuery } from '../../contract/page.js'
import { EndedCallAnswer, PendingCallAnswer, type PendingCallFilter } from '../../contract/rpc.js'
import { nameOf } from '../clients.js'
import type { Detector, ScanContext } from './detector.js'
import { holderEvidence } from './disconnected.js'
import { type Finding, fieldsOf, finding, requestOf } from './finding.js'

const callEvidence = (scan: ScanContext, call: PendingCallAnswer) =>
  scan.evidence(
    'rpc',
    requestOf(`/rpc/pending/${encodeURIComponent(call.correlation_id)}`),
    fieldsOf(call, 'action', 'direction', 'instance_id', 'started_at', 'answered_since'),
  )

const listObserved = ({ inspectors }: ScanContext, filter: PendingCallFilter = {}) => ({
  entry: PendingCallAnswer,
  list: (page: PageQuery, ctx: InspectionContext) =>
    inspectors.rpc.listPending({ observed: true, ...filter }, page, ctx),
})

export const CALLS_NOT_ANSWERED: Detector = {
  kinds: ['call_not_answered'],
  requires: ['rpc'],
  source: 'rpc',
  async detect(scan, page) {
    const { records, next } = await scan.page('rpc', listObserved(scan), page)
    // An inspector that does not know the filter lists every call.
    const passed = records.filter(({ observed, answered_since }) => observed && answered_since === 'later')
    const findings = passed.map((call) => {
      const { correlation_id, user_id, client_id, started_at } = call
      const subject = { correlation_id, user_id, client_id }
      return finding('call_not_answered', subject, started_at, [callEvidence(scan, call)])
    })
    return { findings, next }
  },
}

export const CLIENTS_NOT_ANSWERING: Detector = {
  kinds: ['client_not_answering'],
  requires: ['rpc', 'registry'],
  source: 'rpc',
  async detect(scan, page) {
    const { records, next } = await scan.page('rpc', listObserved(scan), page)
    const isSilent = ({ observed, direction, answered_since }: PendingCallAnswer) =>
      observed === true && direction === 'to_client' && answered_since === 'none'
    const silent = records.filter(isSilent)
    const holderOf = silent.length > 0 ? await scan.holders(silent) : () => null
    const byClient = new Map<string, PendingCallAnswer[]>()
    // The instance that was called is connected.
    for (const call of silent)
      if (call.instance_id !== null && holderOf(call) === call.instance_id)
        byClient.set(nameOf(call), [...(byClient.get(nameOf(call)) ?? []), call])
    const findings: Finding[] = []
    for (const [oldest, ...others] of byClient.values()) {
      if (!oldest) continue
      const { user_id, client_id, correlation_id, started_at } = oldest
      const filter = { user_id, client_id, direction: 'to_client' } as const
      // A page before this one may have found the client.
      if (page.cursor !== null) {
        const before = await scan.pageWith('rpc', listObserved(scan, filter), PAGE_MAX, isSilent)
        if (before.records.find(isSilent)?.correlation_id !== correlation_id) continue
      }
      const route = requestOf('/rpc/pending', { observed: 'true', ...filter })
      const fields = { calls: 1 + others.length, ...fieldsOf(oldest, 'action', 'started_at', 'answered_since') }
      const evidence = [scan.evidence('rpc', route, fields), holderEvidence(scan, oldest, oldest.instance_id)]
      findings.push(finding('client_not_answering', { user_id, client_id }, started_at, evidence))
    }
    return { findings, next }
  },
}

/** Calls by why their connection ended, of the newest page: older ones count as not read. */
export const CALLS_LOST: Detector = {
  kinds: ['calls_lost_with_connection'],
  requires: ['rpc_ended'],
  source: 'rpc',
  async detect(scan, { limit }) {
    const filter = { outcome: 'unanswered', observed: true } as const
    const list = async (query: PageQuery, ctx: InspectionContext) =>
      (await scan.inspectors.rpc.listEnded?.(filter, query, ctx)) ?? { items: [], next_cursor: null, has_more: false }
    const { records, next } = await scan.page('rpc', { entry: EndedCallAnswer, list }, { cursor: null, limit })
    if (next !== null) scan.cut.add('rpc')
    const lost = records.filter(({ outcome, connection_reason }) => outcome === 'unanswered' && connection_reason)
    const byReason = new Map<string, EndedCallAnswer[]>()
    for (const call of lost) {
      const reason = call.connection_reason as string
      byReason.set(reason, [...(byReason.get(reason) ?? []), call])
    }
    const findings = [...byReason].map(([reason, calls]) => {
      const clients = new Set(calls.map(nameOf)).size
      const fields = { calls: calls.length, clients, latest_ended_at: calls[0]?.ended_at ?? null }
      const example = calls[0] && fieldsOf(calls[0], 'action', 'direction', 'user_id', 'client_id')
      const route = requestOf('/rpc/ended', { outcome: 'unanswered', observed: 'true' })
      return finding('calls_lost_with_connection', { reason }, calls.at(-1)?.ended_at ?? null, [
        scan.evidence('rpc', route, { ...fields, ...example }),
      ])
    })
    return { findings, next: null }
  },
}
