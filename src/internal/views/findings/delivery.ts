/** What delivery's own evidence contradicts: commands, reservations and nodes. */
import { type ClientOfUser, ConnectionAnswer } from '../../contract/connections.js'
import {
  DeliveryCommandAnswer,
  DeliveryNodeAnswer,
  DeliveryTenantAnswer,
  type RecoveryReason,
} from '../../contract/delivery.js'
import { addressOf, HEARTBEAT_MS } from '../../contract/delivery-rules.js'
import { partsOf } from '../../contract/evidence.js'
import { PAGE_MAX } from '../../contract/limits.js'
import type { InspectionContext, PageQuery } from '../../contract/page.js'
import { nameOf } from '../clients.js'
import { createListDetector, type ScanContext } from './detector.js'
import { holderEvidence } from './disconnected.js'
import { type Evidence, type Finding, type FindingKind, fieldsOf, finding, requestOf } from './finding.js'

const SOURCE = 'delivery'

const isAlive = (node: DeliveryNodeAnswer) => node.stale !== true && node.reconciliation_loop_alive !== false

/** When a node last reported; 0 if unknown. */
const instantOf = ({ updated_at }: DeliveryNodeAnswer) => (updated_at === null ? 0 : Date.parse(updated_at))

/** The alive node that reported last and for which `counts` is true, from the first page that has one. */
async function latestOf(
  scan: ScanContext,
  counts: (node: DeliveryNodeAnswer) => boolean = () => true,
): Promise<DeliveryNodeAnswer | undefined> {
  const list = (page: PageQuery, ctx: InspectionContext) => scan.inspectors.delivery.listNodes(page, ctx)
  const isMeant = (node: DeliveryNodeAnswer) => isAlive(node) && counts(node)
  const { records } = await scan.pageWith(SOURCE, { entry: DeliveryNodeAnswer, list }, PAGE_MAX, isMeant)
  return records.filter(isMeant).sort((a, b) => instantOf(b) - instantOf(a))[0]
}

/** Whether a loop has looked since `instant`: it reports at least this often, and passes before it does. */
const hasPassed = (node: DeliveryNodeAnswer, instant: string) => instantOf(node) >= Date.parse(instant) + HEARTBEAT_MS

function nodeEvidence(scan: ScanContext, node: DeliveryNodeAnswer | undefined): Evidence {
  if (!node) return scan.evidence(SOURCE, '/delivery/nodes', { living_nodes: 0 })
  const fields = fieldsOf(node, 'node_id', 'stale', 'mailbox_listener_alive', 'reconciliation_loop_alive', 'updated_at')
  return scan.evidence(SOURCE, '/delivery/nodes', fields)
}

function commandEvidence(scan: ScanContext, command: DeliveryCommandAnswer): Evidence {
  const { state, overdue } = command
  const { admission, attempts } = partsOf(command)
  const { at, deadline_at, scope_id } = admission
  return scan.evidence(SOURCE, requestOf('/delivery/status', addressOf(command)), {
    state,
    overdue,
    admitted_at: at,
    deadline_at,
    scope_id,
    attempts: attempts.count,
    last_node_id: attempts.last_node_id,
  })
}

/**
 * The ids that name the command. If its user is unknown, its scope takes their part, because only the scope is unique
 * then.
 */
const subjectOf = ({ user_id, client_id, command_id, admission }: DeliveryCommandAnswer): Record<string, string> => ({
  ...(user_id !== null && { user_id }),
  ...(client_id !== null && { client_id }),
  ...((user_id === null || client_id === null) && admission?.scope_id && { scope_id: admission.scope_id }),
  command_id,
})

/** A finding about a command, named by the parameters of its status route. */
const ofCommand = (
  kind: FindingKind,
  command: DeliveryCommandAnswer,
  since: string | null,
  evidence: Evidence[],
): Finding => finding(kind, subjectOf(command), since, evidence, addressOf(command))

/** A command without a known client cannot have a missing client. */
const isForClient = (command: DeliveryCommandAnswer): command is DeliveryCommandAnswer & ClientOfUser =>
  command.user_id !== null && command.client_id !== null

export const COMMANDS_OVERDUE = createListDetector<DeliveryCommandAnswer>({
  kinds: ['command_overdue'],
  requires: ['delivery_commands'],
  source: SOURCE,
  entry: DeliveryCommandAnswer,
  list: ({ delivery }, page, ctx) => delivery.listCommands?.({ overdue: true }, page, ctx),
  async find(commands, scan) {
    const node = await latestOf(scan)
    return commands.flatMap((command) => {
      const { deadline_at } = partsOf(command).admission
      if (!command.overdue || deadline_at === null || (node && !hasPassed(node, deadline_at))) return []
      const evidence = [commandEvidence(scan, command), nodeEvidence(scan, node)]
      return [ofCommand('command_overdue', command, deadline_at, evidence)]
    })
  },
})

/** Clients with a command being delivered, for which others wait; `null` if there is more than one page of them. */
async function busyClients(scan: ScanContext): Promise<Set<string> | null> {
  const list = async (page: PageQuery, ctx: InspectionContext) => {
    const listed = await scan.inspectors.delivery.listCommands?.({ state: 'attempted' }, page, ctx)
    return listed ?? { items: [], next_cursor: null, has_more: false }
  }
  const { records, next } = await scan.pageWith(SOURCE, { entry: DeliveryCommandAnswer, list }, PAGE_MAX)
  if (next !== null) scan.cut.add(SOURCE)
  return next === null ? new Set(records.filter(isForClient).map(nameOf)) : null
}

/** Clients whose connections are looked for while a node is silent: one request each. */
const LOOKED_MAX = 20

/**
 * Which of `clients`, who are recorded as connected, are so at a node that reports: what a silent node last said of its own may
 * be over.
 */
async function connectedForSure(
  clients: readonly ClientOfUser[],
  scan: ScanContext,
): Promise<(client: ClientOfUser) => boolean> {
  if (clients.length === 0) return () => false
  const list = (page: PageQuery, ctx: InspectionContext) => scan.inspectors.delivery.listNodes(page, ctx)
  const silent = new Set<string>()
  let cursor: string | null = null
  do {
    const page: { records: DeliveryNodeAnswer[]; next: string | null } = await scan.page(
      SOURCE,
      { entry: DeliveryNodeAnswer, list },
      { cursor, limit: PAGE_MAX },
    )
    for (const { node_id, stale } of page.records) if (stale) silent.add(node_id)
    cursor = page.next
  } while (cursor !== null)
  if (silent.size === 0) return () => true
  const distinct = [...new Map(clients.map((client) => [nameOf(client), client])).values()]
  if (distinct.length > LOOKED_MAX) scan.cut.add('registry')
  const sure = new Set<string>()
  const look = async ({ user_id, client_id }: ClientOfUser) => {
    const connections = {
      entry: ConnectionAnswer,
      list: (page: PageQuery, ctx: InspectionContext) =>
        scan.inspectors.registry.listConnections({ user_id, client_id, status: 'connected' }, page, ctx),
    }
    const { records: found } = await scan.pageWith('registry', connections, 1)
    if (found.some(({ node_id }) => node_id === null || !silent.has(node_id))) sure.add(nameOf({ user_id, client_id }))
  }
  await Promise.all(distinct.slice(0, LOOKED_MAX).map(look))
  return (client) => sure.has(nameOf(client))
}

export const COMMANDS_WAITING = createListDetector<DeliveryCommandAnswer>({
  kinds: ['command_waiting_though_listened', 'command_waiting_for_nobody'],
  requires: ['delivery_commands', 'registry'],
  source: SOURCE,
  entry: DeliveryCommandAnswer,
  list: ({ delivery }, page, ctx) => delivery.listCommands?.({ state: 'waiting' }, page, ctx),
  async find(all, scan) {
    const commands = all.filter(isForClient).filter(({ state, overdue }) => state === 'waiting' && !overdue)
    if (commands.length === 0) return []
    const holderOf = await scan.holders(commands)
    const node = await latestOf(scan, ({ mailbox_listener_alive }) => mailbox_listener_alive !== false)
    const held = commands.filter((command) => holderOf(command) !== null)
    const busy = held.length > 0 ? await busyClients(scan) : null
    const isConnected = await connectedForSure(held, scan)
    return commands.flatMap((command): Finding[] => {
      const { user_id, client_id } = command
      const { at } = partsOf(command).admission
      const holder = holderOf(command)
      const evidence = [commandEvidence(scan, command), holderEvidence(scan, command, holder)]
      if (holder === null) return [ofCommand('command_waiting_for_nobody', command, at, evidence)]
      if (at === null || !node || !hasPassed(node, at) || !isConnected(command)) return []
      // Commands of a client take turns, but one that has no attached connection waits for that, not for its turn.
      const waitsForTurn =
        command.waits_for !== 'client_not_attached' && busy?.has(nameOf({ user_id, client_id })) !== false
      if (waitsForTurn) return []
      return [ofCommand('command_waiting_though_listened', command, at, [...evidence, nodeEvidence(scan, node)])]
    })
  },
})

/** Reasons for another attempt that concern the client or its connection. Others concern a node. */
const UNANSWERED = new Set<RecoveryReason | null>(['ack_timeout', 'deliver_timed_out', 'deliver_rejected'])

const isUnanswered = (command: DeliveryCommandAnswer) => UNANSWERED.has(partsOf(command).recovery.reason)

export const COMMANDS_UNACKNOWLEDGED = createListDetector<DeliveryCommandAnswer>({
  kinds: ['command_not_acknowledged', 'command_waiting_for_nobody'],
  requires: ['delivery_commands', 'registry'],
  source: SOURCE,
  entry: DeliveryCommandAnswer,
  list: ({ delivery }, page, ctx) => delivery.listCommands?.({ state: 'attempted' }, page, ctx),
  async find(all, scan) {
    const commands = all
      .filter(isForClient)
      .filter(
        ({ state, overdue, acknowledgement }) => state === 'attempted' && !overdue && acknowledgement?.state === 'none',
      )
    if (commands.length === 0) return []
    const holderOf = await scan.holders(commands)
    const held = commands.filter((command) => isUnanswered(command) && holderOf(command) !== null)
    const isConnected = await connectedForSure(held, scan)
    const alone = commands.filter((command) => holderOf(command) === null)
    const ofGone = alone.map((command) => {
      const evidence = [commandEvidence(scan, command), holderEvidence(scan, command, null)]
      return ofCommand('command_waiting_for_nobody', command, partsOf(command).admission.at, evidence)
    })
    const ofHeld = held.filter(isConnected).map((command): Finding => {
      const holder = holderOf(command)
      const { attempts, acknowledgement, recovery } = partsOf(command)
      const seen = commandEvidence(scan, command)
      const fields = {
        ...seen.fields,
        ...fieldsOf(attempts, 'confirmed', 'last_at', 'last_node_id', 'last_outcome'),
        acknowledgement: acknowledgement.state,
        recoveries: recovery.count,
        recovery_reason: recovery.reason,
      }
      // Of attempts that are no longer listed, it is not known when the first failed.
      const failed = attempts.items.find(({ reason }) => UNANSWERED.has(reason))
      const firstAt = attempts.omitted === 0 ? (failed?.ended_at ?? null) : null
      const since = recovery.count === 1 ? recovery.last_at : firstAt
      const evidence = [{ ...seen, fields }, holderEvidence(scan, command, holder)]
      return ofCommand('command_not_acknowledged', command, since, evidence)
    })
    return [...ofGone, ...ofHeld]
  },
})

/** Latest commands of a client that are read to see whether it has acknowledged one: more where it has none of these. */
const RECENT = 50
const EARLIER = 500

/** Whether its client was asked and never answered: a host that settles it has an answer. */
function isLeftUnanswered(command: DeliveryCommandAnswer): boolean {
  const { acknowledgement, attempts } = partsOf(command)
  return (
    (command.terminal?.reason === 'attempts_exhausted' || command.terminal?.reason === 'deadline_passed') &&
    acknowledgement.state === 'none' &&
    (isUnanswered(command) || attempts.items.some(({ reason }) => UNANSWERED.has(reason)))
  )
}

/** An end that says nothing about the client: it was not asked, or what it did no longer mattered. */
const saysNothing = ({ attempts, terminal }: DeliveryCommandAnswer) =>
  terminal === null || attempts?.count === 0 || terminal.state === 'cancelled'

/**
 * The latest commands of one client that it left unanswered, the latest first; none if it has answered since, or if too many others
 * are open.
 */
async function leftUnanswered(
  { user_id, client_id }: ClientOfUser,
  scan: ScanContext,
): Promise<{ unanswered: DeliveryCommandAnswer[]; since: string | null }> {
  const list = async (page: PageQuery, ctx: InspectionContext) =>
    (await scan.inspectors.delivery.listCommands?.({ user_id, client_id }, { ...page, order: 'newest' }, ctx)) ??
    NOTHING
  const read = (limit: number) => scan.page(SOURCE, { entry: DeliveryCommandAnswer, list }, { cursor: null, limit })
  let { records, next } = await read(RECENT)
  const hasOthers = next !== null && records.every((command) => saysNothing(command) || isLeftUnanswered(command))
  // What other clients and lists need comes first.
  if (hasOthers && scan.budget(SOURCE).entries > 4 * EARLIER) ({ records, next } = await read(EARLIER))
  const asked = records.filter((command) => !saysNothing(command))
  // The latest one may be further back.
  if (asked.length === 0 && next !== null) scan.cut.add(SOURCE)
  const answeredAt = asked.findIndex((command) => !isLeftUnanswered(command))
  const unanswered = answeredAt < 0 ? asked : asked.slice(0, answeredAt)
  const endedAt = unanswered[0]?.terminal?.at ?? ''
  const hasAnswered = records.some(
    ({ acknowledgement }) => acknowledgement?.at && Date.parse(acknowledgement.at) >= Date.parse(endedAt),
  )
  const since = unanswered.at(-1)?.terminal?.at ?? null
  return { unanswered: hasAnswered ? [] : unanswered, since }
}

/** Looks for clients that stay silent along the commands that ended in `state` for `reason`, the latest first. */
const clientsNotAcknowledging = (state: 'failed' | 'expired', reason: 'attempts_exhausted' | 'deadline_passed') =>
  createListDetector<DeliveryCommandAnswer>({
    kinds: ['client_not_acknowledging'],
    requires: ['delivery_commands', 'registry'],
    source: SOURCE,
    entry: DeliveryCommandAnswer,
    list: ({ delivery }, page, ctx) => delivery.listCommands?.({ state, reason }, { ...page, order: 'newest' }, ctx),
    async find(all, scan) {
      const ended = all.filter(isForClient).filter(isLeftUnanswered)
      if (ended.length === 0) return []
      const holderOf = await scan.holders(ended)
      // Another instance of the client has not been asked.
      const held = ended.filter((command) => {
        const holder = holderOf(command)
        return typeof holder === 'string' && command.attempts?.items.at(-1)?.instance_id === holder
      })
      const isConnected = await connectedForSure(held, scan)
      const latest = new Map<string, DeliveryCommandAnswer & ClientOfUser>()
      for (const command of held.filter(isConnected))
        if (!latest.has(nameOf(command))) latest.set(nameOf(command), command)
      if (latest.size > LOOKED_MAX) scan.cut.add(SOURCE)
      const found: Finding[] = []
      for (const command of [...latest.values()].slice(0, LOOKED_MAX)) {
        const { unanswered, since } = await leftUnanswered(command, scan)
        // A later one is found where it is listed.
        if (unanswered[0]?.command_id !== command.command_id) continue
        const seen = commandEvidence(scan, command)
        const fields = {
          ...seen.fields,
          ended_at: command.terminal?.at ?? null,
          unacknowledged_in_a_row: unanswered.length,
        }
        const evidence = [{ ...seen, fields }, holderEvidence(scan, command, holderOf(command))]
        const { user_id, client_id } = command
        found.push(finding('client_not_acknowledging', { user_id, client_id }, since, evidence))
      }
      return found
    },
  })

export const CLIENTS_NOT_ACKNOWLEDGING = [
  clientsNotAcknowledging('failed', 'attempts_exhausted'),
  clientsNotAcknowledging('expired', 'deadline_passed'),
]

export const RESERVATIONS_WITHOUT_COMMAND = createListDetector<DeliveryTenantAnswer>({
  kinds: ['reservation_without_command'],
  requires: ['delivery', 'delivery_commands'],
  source: SOURCE,
  entry: DeliveryTenantAnswer,
  list: ({ delivery }, page, ctx) => delivery.listTenants(page, ctx),
  async find(tenants, scan) {
    const reserving = tenants.filter(({ reserved_commands }) => reserved_commands !== null && reserved_commands > 0)
    if (reserving.length === 0) return []
    // Deadlines are instants of the source's clock, which may differ from that of this process.
    const now = await scan.inspect(SOURCE, async ({ ctx, now }) => {
      const { observed_at } = await scan.inspectors.delivery.summary(ctx)
      return observed_at ? Date.parse(observed_at) : now()
    })
    const late = reserving.filter(
      ({ oldest_deadline_at }) => oldest_deadline_at !== null && Date.parse(oldest_deadline_at) <= now,
    )
    if (late.length === 0) return []
    const list = async (page: PageQuery, ctx: InspectionContext) =>
      (await scan.inspectors.delivery.listCommands?.({ overdue: true }, page, ctx)) ?? NOTHING
    const { records, next } = await scan.pageWith(SOURCE, { entry: DeliveryCommandAnswer, list }, PAGE_MAX)
    // Of the scopes beyond that page nothing is known.
    if (next !== null) {
      scan.cut.add(SOURCE)
      return []
    }
    // A command whose scope is not known may be of any.
    if (records.some(({ admission }) => !admission?.scope_id)) return []
    const scopes = new Set(records.map(({ admission }) => admission?.scope_id))
    return late
      .filter(({ scope_id }) => !scopes.has(scope_id))
      .map((tenant) => {
        const { scope_id, oldest_deadline_at } = tenant
        return finding('reservation_without_command', { scope_id }, oldest_deadline_at, [
          scan.evidence(
            SOURCE,
            requestOf('/delivery/tenants', { scope_id }),
            fieldsOf(tenant, 'reserved_commands', 'oldest_deadline_at'),
          ),
          scan.evidence(SOURCE, requestOf('/delivery/commands', { scope_id, overdue: 'true' }), { commands: 0 }),
        ])
      })
  },
})

const NOTHING = { items: [], next_cursor: null, has_more: false }

/** Silent nodes of a page whose connections are looked for: one question each. */
const SILENT_MAX = 20

/** A connection that is recorded as connected at `node_id`. */
async function connectionAt(node_id: string, scan: ScanContext): Promise<ConnectionAnswer | undefined> {
  const { registry } = scan.inspectors
  if (!registry) return undefined
  const list = (page: PageQuery, ctx: InspectionContext) =>
    registry.listConnections({ node_id, status: 'connected' }, page, ctx)
  const { records } = await scan.pageWith('registry', { entry: ConnectionAnswer, list }, 1)
  // A registry that does not support the filter lists connections of every node.
  return records.find((connection) => connection.node_id === node_id && connection.status === 'connected')
}

export const SILENT_NODES = createListDetector<DeliveryNodeAnswer>({
  kinds: ['silent_node_holds'],
  requires: ['delivery'],
  source: SOURCE,
  entry: DeliveryNodeAnswer,
  list: ({ delivery }, page, ctx) => delivery.listNodes(page, ctx),
  async find(nodes, scan) {
    const silent = nodes.filter(({ stale }) => stale === true)
    if (silent.length > SILENT_MAX) scan.cut.add(SOURCE)
    const found = await Promise.all(silent.slice(0, SILENT_MAX).map((node) => ofSilent(node, scan)))
    return found.flat()
  },
})

async function ofSilent(node: DeliveryNodeAnswer, scan: ScanContext): Promise<Finding[]> {
  const { node_id, connection_waiters, active_drainers, updated_at } = node
  const held = await connectionAt(node_id, scan)
  if (!held && !connection_waiters && !active_drainers) return []
  const evidence = [
    scan.evidence(
      SOURCE,
      '/delivery/nodes',
      fieldsOf(node, 'stale', 'updated_at', 'connection_waiters', 'active_drainers'),
    ),
  ]
  if (held)
    evidence.push(
      scan.evidence(
        'registry',
        requestOf('/connections', { node_id, status: 'connected' }),
        fieldsOf(held, 'connection_id', 'user_id', 'client_id', 'last_seen_at'),
      ),
    )
  return [finding('silent_node_holds', { node_id }, updated_at, evidence)]
}
