/** Explains why a command has not arrived: a chain of links, each with its evidence. */
import { BadRecord, readRecord, requireRequested } from '../contract/bad-record.js'
import type { SourceName } from '../contract/capabilities.js'
import { ConnectionAnswer } from '../contract/connections.js'
import {
  type CommandKey,
  DeliveryMailboxAnswer,
  DeliveryNodeAnswer,
  DeliveryStatusAnswer,
} from '../contract/delivery.js'
import { partsOf } from '../contract/evidence.js'
import type { Inspectors } from '../contract/families.js'
import { toTimestamp } from '../contract/ids.js'
import type { InspectionContext, PageQuery } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import { requestOf } from './findings/finding.js'
import {
  type Budget,
  budgetOf,
  completenessOf,
  type Entries,
  joinReadings,
  parseRecords,
  readPage,
  type SourceReading,
  type ViewContext,
  viewForSource,
} from './reading.js'
import {
  type DeliveryWhy,
  type NotLookedAt,
  verdictOf,
  type WhyEvidence,
  type WhyLink,
  WhyLinkName,
  whyLink,
} from './why-links.js'

/** Maximum number of connections of the client that are read, newest first. */
const CONNECTIONS = 20

/** The result of reading one source, or why there is none. */
interface Read<T> {
  readonly value: T | undefined
  readonly missing: NotLookedAt['reason'] | undefined
  readonly at: string
  readonly reading: SourceReading | undefined
}

const ABSENT = { value: undefined, missing: 'absent', at: '', reading: undefined } as const
const OVER = { ...ABSENT, missing: 'over' } as const

/** Everything that was read. */
interface Facts {
  readonly key: CommandKey
  readonly status: Read<DeliveryStatusAnswer | null>
  /** The newest connections of the client. */
  readonly connections: Read<ConnectionAnswer[]>
  readonly connected: Read<ConnectionAnswer[]>
  readonly mailboxes: Read<DeliveryMailboxAnswer[]>
  /** The node of its newest connection, read if the client is connected without a mailbox; empty if nodes don't list it. */
  readonly node: Read<DeliveryNodeAnswer[]>
}

/** Reads one source once. An error makes only this reading fail. @throws Refusal `invalid_identity` */
async function readSource<T>(
  source: SourceName,
  view: ViewContext,
  work: (view: ViewContext, budget: Budget) => Promise<T>,
): Promise<Read<T>> {
  const own = viewForSource(view, source)
  const budget = budgetOf(own)
  const before = budget.entries
  const at = () => toTimestamp(view.now())
  try {
    const value = await work(own, budget)
    const examined = before - budget.entries
    return { value, missing: undefined, at: at(), reading: { source, examined, truncated: false, value } }
  } catch (error) {
    if (error instanceof Refusal && error.code === 'invalid_identity') throw error
    if (error === CUT) {
      const reading = { source, examined: before - budget.entries, truncated: true, value: [] }
      return { value: undefined, missing: 'cut_short', at: at(), reading }
    }
    own.onError(source, error)
    const reading = { source, examined: 0, truncated: true, value: undefined, error }
    return { value: undefined, missing: 'failed', at: at(), reading }
  }
}

/** Thrown if a page ended before any entry of the client. */
const CUT = Symbol('cut')

/** The entries of the client on the first page of a list. @throws CUT if it has none and more pages follow */
async function ofClient<T extends { user_id: string; client_id: string }>(
  source: SourceName,
  entries: Entries<T>,
  { user_id, client_id }: CommandKey,
  limit: number,
  view: ViewContext,
  budget: Budget,
): Promise<T[]> {
  const page = await readPage(entries.list, null, limit, budget, view)
  // A source that ignores the filter lists entries of other clients.
  const own = parseRecords(source, entries.entry, page, view).filter(
    (one) => one.user_id === user_id && one.client_id === client_id,
  )
  if (own.length === 0 && (page.has_more || page.items.length > 0)) throw CUT
  return own
}

async function readStatus(
  { delivery }: Inspectors,
  key: CommandKey,
  view: ViewContext,
): Promise<Read<DeliveryStatusAnswer | null>> {
  if (!delivery) return ABSENT
  return readSource('delivery', view, async ({ ctx }) => {
    const found = await delivery.status(key, ctx)
    if (found === null) return null
    const read = readRecord(DeliveryStatusAnswer, found, 0)
    if (read instanceof BadRecord) throw read
    const { user_id, client_id, command_id, admission } = read.data
    const scope = admission?.scope_id ?? null
    requireRequested({ user_id: user_id ?? scope, client_id: client_id ?? scope, command_id }, { ...key })
    return read.data
  })
}

/** Reads the connections of the client and its mailbox. */
async function readClient({ registry, delivery }: Inspectors, key: CommandKey, isOver: boolean, view: ViewContext) {
  const { user_id, client_id } = key
  const connectionsOf = (only: { status?: 'connected' }, limit: number) =>
    registry
      ? readSource('registry', view, (own, budget) => {
          const list = (page: PageQuery, ctx: InspectionContext) =>
            registry.listConnections({ user_id, client_id, ...only }, { ...page, order: 'newest' }, ctx)
          return ofClient('registry', { entry: ConnectionAnswer, list }, key, limit, own, budget)
        })
      : ABSENT
  const { listMailboxes } = delivery ?? {}
  const mailboxes = () =>
    listMailboxes
      ? readSource('delivery', view, (own, budget) => {
          const list = (page: PageQuery, ctx: InspectionContext) =>
            listMailboxes.call(delivery, { user_id, client_id }, page, ctx)
          return ofClient('delivery', { entry: DeliveryMailboxAnswer, list }, key, 1, own, budget)
        })
      : ABSENT
  return Promise.all([
    connectionsOf({}, CONNECTIONS),
    isOver ? OVER : connectionsOf({ status: 'connected' }, 1),
    isOver ? OVER : mailboxes(),
  ])
}

/** Maximum number of nodes among which the one of a connection is looked for. */
const NODES = 200

/** Reads the node of a connection without a mailbox: a node that stopped leaves its connections behind until they expire. */
async function readNode(
  { delivery }: Inspectors,
  [newest]: readonly ConnectionAnswer[],
  mailboxes: Read<DeliveryMailboxAnswer[]>,
  view: ViewContext,
): Promise<Read<DeliveryNodeAnswer[]>> {
  const node_id = newest?.node_id ?? null
  if (!delivery || node_id === null || mailboxes.value?.length !== 0) return ABSENT
  return readSource('delivery', view, async (own, budget) => {
    const list = (page: PageQuery, ctx: InspectionContext) => delivery.listNodes(page, ctx)
    try {
      const page = await readPage(list, null, NODES, budget, own)
      return parseRecords('delivery', DeliveryNodeAnswer, page, own).filter((node) => node.node_id === node_id)
    } catch (error) {
      // Scoped callers must not see nodes.
      if (error instanceof Refusal && error.code === 'not_narrowable') return []
      throw error
    }
  })
}

const isOpen = (status: DeliveryStatusAnswer | null | undefined) =>
  !status ||
  (status.terminal === null &&
    partsOf(status).acknowledgement.state !== 'acknowledged' &&
    partsOf(status).acknowledgement.state !== 'refused')

type Judged = Pick<WhyLink, 'holds' | 'evidence'> & { isRefused?: boolean }

/** Evidence from the record of the command. */
function ofStatus({ key, status }: Facts, fields: Readonly<Record<string, WhyEvidence['value']>>): WhyEvidence[] {
  const route = requestOf('/delivery/status', { ...key })
  return Object.entries(fields).map(([field, value]) => ({
    source: 'delivery',
    route,
    field,
    value,
    observed_at: status.at,
  }))
}

/** Judges a link by the record of the command, if one was read. */
function byRecord(facts: Facts, judge: (status: DeliveryStatusAnswer) => Judged): Judged {
  const { value } = facts.status
  if (value) return judge(value)
  return { holds: null, evidence: value === null ? ofStatus(facts, { record: null }) : [] }
}

const admitted = (facts: Facts): Judged =>
  byRecord(facts, (status) => {
    const { state, at } = partsOf(status).admission
    return {
      holds: state && state === 'admitted',
      evidence: ofStatus(facts, {
        'admission.state': state,
        'admission.at': at,
        ...(state === 'rejected' && { 'terminal.reason': status.terminal?.reason ?? null }),
      }),
    }
  })

/** Evidence from the newest connection of the client among `found`, or that there is none. */
function ofConnections(
  { key }: Facts,
  { value = [], at }: Read<ConnectionAnswer[]>,
  status?: 'connected',
): WhyEvidence[] {
  const { user_id, client_id } = key
  const route = requestOf('/connections', { user_id, client_id, ...(status && { status }) })
  const [newest] = value
  const fields: Record<string, WhyEvidence['value']> = newest
    ? {
        connection_id: newest.connection_id,
        status: newest.status,
        connected_at: newest.connected_at,
        disconnected_at: newest.disconnected_at,
        node_id: newest.node_id,
      }
    : { connections: 0 }
  return Object.entries(fields).map(([field, value]) => ({ source: 'registry', route, field, value, observed_at: at }))
}

/** An attempt proves that a connection of the client was attached. */
function byAttempt(facts: Facts): Judged | undefined {
  const status = facts.status.value
  if (!status) return undefined
  const { count, last_at, last_node_id } = partsOf(status).attempts
  if (!count) return undefined
  return {
    holds: true,
    evidence: ofStatus(facts, {
      'attempts.count': count,
      'attempts.last_at': last_at,
      'attempts.last_node_id': last_node_id,
    }),
  }
}

function clientKnown(facts: Facts): Judged {
  const tried = byAttempt(facts)
  if (tried) return tried
  const { value } = facts.connections
  if (!value) return { holds: null, evidence: [] }
  // A command that has ended may be older than the retained connections.
  const none = isOpen(facts.status.value) ? false : null
  return { holds: value.length > 0 || none, evidence: ofConnections(facts, facts.connections) }
}

/** Whether a connection existed at any time between the admission of a command and its end. What is not known excludes nothing. */
function overlaps(connection: ConnectionAnswer, { admission, terminal }: DeliveryStatusAnswer): boolean {
  const { connected_at, disconnected_at } = connection
  const isNotAfter = (a: string | null | undefined, b: string | null | undefined) => !a || !b || a <= b
  return isNotAfter(connected_at, terminal?.at) && isNotAfter(admission?.at, disconnected_at)
}

const ofNode = ({ stale, updated_at }: DeliveryNodeAnswer, observed_at: string): WhyEvidence[] =>
  Object.entries({ stale, updated_at }).map(([field, value]) => ({
    source: 'delivery',
    route: '/delivery/nodes',
    field,
    value,
    observed_at,
  }))

function connected(facts: Facts): Judged {
  const tried = byAttempt(facts)
  if (tried) return tried
  const status = facts.status.value
  if (!status || isOpen(status)) {
    const { value } = facts.connected
    if (!value) return { holds: null, evidence: [] }
    const evidence = ofConnections(facts, facts.connected, 'connected')
    const silent = facts.node.value?.find(({ stale }) => stale)
    if (silent) return { holds: null, evidence: [...evidence, ...ofNode(silent, facts.node.at)] }
    return { holds: value.some((one) => one.status === 'connected'), evidence }
  }
  const { connections } = facts
  const then = connections.value?.filter((one) => overlaps(one, status))
  if (!then) return { holds: null, evidence: [] }
  return { holds: then.length > 0 || null, evidence: ofConnections(facts, { ...connections, value: then }) }
}

function mailboxAttached(facts: Facts): Judged {
  const tried = byAttempt(facts)
  if (tried) return tried
  const { value, at } = facts.mailboxes
  if (!value) return { holds: null, evidence: [] }
  const { user_id, client_id } = facts.key
  const route = requestOf('/delivery/mailboxes', { user_id, client_id })
  const [mailbox] = value
  const fields: Record<string, WhyEvidence['value']> = mailbox
    ? {
        instance_id: mailbox.instance_id,
        node_id: mailbox.node_id,
        attached_at: mailbox.attached_at,
        waiting_commands: mailbox.waiting_commands,
      }
    : { mailboxes: 0 }
  const evidence = Object.entries(fields).map(
    ([field, value]): WhyEvidence => ({ source: 'delivery', route, field, value, observed_at: at }),
  )
  return { holds: mailbox !== undefined, evidence }
}

const handedOver = (facts: Facts): Judged =>
  byRecord(facts, (status) => {
    const { count, confirmed, last_at, last_outcome, items, omitted } = partsOf(status).attempts
    // A pending attempt, or one with an unknown outcome, may have reached the client.
    const isUnsure = omitted !== 0 || items.some(({ outcome }) => outcome !== 'rejected')
    return {
      holds: confirmed ? true : count === null || confirmed === null || (count > 0 && isUnsure) ? null : false,
      evidence: ofStatus(facts, {
        'attempts.count': count,
        'attempts.confirmed': confirmed,
        'attempts.last_at': last_at,
        'attempts.last_outcome': last_outcome,
      }),
    }
  })

const acknowledged = (facts: Facts): Judged =>
  byRecord(facts, (status) => {
    const { state, at, instance_id } = partsOf(status).acknowledgement
    // A command can be settled without an acknowledgement.
    const none = state === null || status.terminal?.state === 'resulted' ? null : false
    return {
      holds: state === 'acknowledged' || none,
      isRefused: state === 'refused',
      evidence: ofStatus(facts, {
        'acknowledgement.state': state,
        'acknowledgement.at': at,
        'acknowledgement.instance_id': instance_id,
      }),
    }
  })

const ended = (facts: Facts): Judged =>
  byRecord(facts, ({ terminal, admission }) => ({
    holds: terminal !== null,
    evidence: ofStatus(
      facts,
      terminal
        ? { 'terminal.state': terminal.state, 'terminal.at': terminal.at, 'terminal.reason': terminal.reason }
        : { terminal: null, 'admission.deadline_at': admission?.deadline_at ?? null },
    ),
  }))

const JUDGES: Record<WhyLinkName, (facts: Facts) => Judged> = {
  admitted,
  client_known: clientKnown,
  connected,
  mailbox_attached: mailboxAttached,
  handed_over: handedOver,
  acknowledged,
  ended,
}

function linksOf(facts: Facts): WhyLink[] {
  return WhyLinkName.options.map((link) => {
    const { holds, evidence, isRefused } = JUDGES[link](facts)
    return whyLink(link, holds, evidence, isRefused)
  })
}

/** Links that are unknown because a source was not read. */
function notLookedAt(facts: Facts, links: readonly WhyLink[]): NotLookedAt[] {
  const asked = [
    ['admitted', 'delivery', facts.status],
    ['client_known', 'registry', facts.connections],
    ['connected', 'registry', facts.connected],
    ['mailbox_attached', 'delivery', facts.mailboxes],
    ['handed_over', 'delivery', facts.status],
    ['acknowledged', 'delivery', facts.status],
    ['ended', 'delivery', facts.status],
  ] as const
  return asked.flatMap(([link, source, { missing }]) => {
    const isUnknown = links.some((one) => one.link === link && one.holds === null)
    return missing !== undefined && isUnknown ? [{ link, source, reason: missing }] : []
  })
}

/** Joins the readings of each source. */
function readingsOf(reads: readonly Read<unknown>[]): SourceReading[] {
  const bySource = new Map<SourceName, SourceReading>()
  for (const { reading } of reads) {
    if (!reading) continue
    const known = bySource.get(reading.source)
    bySource.set(
      reading.source,
      known ? { ...joinReadings(known, reading), value: known.value ?? reading.value } : reading,
    )
  }
  return [...bySource.values()]
}

/**
 * Explains why a command has not arrived. An absent or failing source makes its links unknown, never broken.
 *
 * @throws Refusal `invalid_identity`; the error of the sources if all of them failed.
 */
export async function explainDelivery(
  inspectors: Inspectors,
  key: CommandKey,
  view: ViewContext,
): Promise<DeliveryWhy> {
  const status = await readStatus(inspectors, key, view)
  const [connections, connected, mailboxes] = await readClient(inspectors, key, !isOpen(status.value), view)
  const node = await readNode(inspectors, connected.value ?? [], mailboxes, view)
  const facts: Facts = { key, status, connections, connected, mailboxes, node }
  const links = linksOf(facts)
  return {
    ...key,
    verdict: verdictOf(links),
    links,
    not_looked_at: notLookedAt(facts, links),
    completeness: completenessOf(readingsOf([status, connections, connected, mailboxes, node]), view),
    observed_at: toTimestamp(view.now()),
  }
}
