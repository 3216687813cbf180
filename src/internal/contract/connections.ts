/** The connections family: who is connected, as which client and instance, and which actions it offers. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { answerOf } from './answer.js'
import { unknownName } from './checks.js'
import { type Family, foldUsers } from './family.js'
import {
  byReason,
  filterBy,
  Id,
  idField,
  lastAtOrBefore,
  Reason,
  randomUuid,
  SilentForMs,
  SPAN_FILTERS,
  Timestamp,
} from './ids.js'
import { JsonRecord } from './json.js'
import { addNames, type FoldedPart, orUnknown, type UserIndex } from './observation.js'
import {
  count,
  defineOptions,
  duration,
  func,
  type Input,
  inputObject,
  parseInput,
  share,
  textOrNull,
} from './options.js'
import type { Awaitable, Indexed, InspectionContext, Page, PageQuery } from './page.js'

// How many connections came and went in each of the last minutes, for those who look for what disturbs a deployment.

/** Maximum minutes in a churn response, including the current one. */
export const CHURN_MINUTES = 60
/** Maximum combinations of node, client type and reason per minute; in a shared store per shard. */
export const CHURN_COMBINATIONS = 100
export const MINUTE_MS = 60_000

/** The reason counted for ends without one. */
export const UNSPECIFIED = 'unspecified'
/** The reason counted for combinations over the limit. */
export const OTHER = 'other'

const Count = z.int().min(0)

/** What happened in one minute. */
export const ChurnMinute = z
  .object({
    minute: Timestamp.describe('When the minute began.'),
    opened: Count.describe('Connections opened in this minute.'),
    ended: z
      .record(Reason, Count)
      .describe(
        `Ended connections by \`ended_reason\`; \`${UNSPECIFIED}\` without a reason, \`${OTHER}\` for combinations over the limit.`,
      ),
  })
  .describe('The counts of one observed minute.')
export type ChurnMinute = z.infer<typeof ChurnMinute>

/** `ChurnMinute` as routes answer it. */
export const ChurnMinuteAnswer = answerOf(ChurnMinute, ['minute'])
export type ChurnMinuteAnswer = z.output<typeof ChurnMinuteAnswer>
/** `ChurnMinute` as an inspector returns it: a field that is absent is not known. */
export type ChurnMinuteInput = z.input<typeof ChurnMinuteAnswer>

/** The observed minutes, oldest first. A missing minute was not observed, and nothing is known about it. */
export const ConnectionChurn = z
  .object({
    items: z
      .array(ChurnMinute)
      .max(CHURN_MINUTES)
      .describe('The observed minutes, oldest first; nothing is known about missing ones.'),
    observed_at: Timestamp.describe('When this was read.'),
  })
  .describe('Connections opened and ended in each of the last sixty minutes.')
export type ConnectionChurn = z.infer<typeof ConnectionChurn>

/** `ConnectionChurn` as routes answer it. */
export const ConnectionChurnAnswer = answerOf(ConnectionChurn, ['items'], {
  items: z.array(ChurnMinuteAnswer).max(CHURN_MINUTES),
})
export type ConnectionChurnAnswer = z.output<typeof ConnectionChurnAnswer>
/** `ConnectionChurn` as an inspector returns it: a field that is absent is not known. */
export type ConnectionChurnInput = z.input<typeof ConnectionChurnAnswer>

/** The number of the minute that `epochMs` is in. */
export const minuteOf = (epochMs: number): number => Math.floor(epochMs / MINUTE_MS)

/** What kind of program a client is. */
export const ClientType = z.enum(['browser', 'console', 'mobile', 'web']).describe('What kind of program a client is.')
export type ClientType = z.infer<typeof ClientType>

/** Status of a connection. */
export const ConnectionStatus = z
  .enum(['connected', 'disconnected'])
  .describe('Status derived from the last heartbeat.')
export type ConnectionStatus = z.infer<typeof ConnectionStatus>

/** One connection of one instance of a client. A disconnected one is kept for a while, so that a reader can see it go. */
export const Connection = z
  .object({
    connection_id: idField('connection_id'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: idField('instance_id'),
    client_type: ClientType.describe('What kind of program the client is.'),
    node_id: z
      .string()
      .nullable()
      .describe('The node that holds the connection; `null` in a single-node deployment (delivery: `local`).'),
    status: ConnectionStatus.describe('Whether it is connected, according to its last heartbeat.'),
    connected_at: Timestamp.describe('When it was registered.'),
    last_seen_at: Timestamp.describe('Time of its last heartbeat.'),
    disconnected_at: Timestamp.nullable().describe('When it disconnected; `null` while it is connected.'),
    ended_reason: Reason.nullable()
      .optional()
      .describe('Why the connection ended; `null` while connected, or without a reason.'),
    superseded_count: z
      .int()
      .min(0)
      .optional()
      .describe(
        'How many times this client of this user had been taken over by a newer instance when it connected, as far as earlier connections are retained.',
      ),
    actions: z.array(z.string()).describe('Names of the actions that the client offers.'),
    metadata: JsonRecord.describe('Client-supplied metadata.'),
  })
  .describe('One connection of one instance of a client. A disconnected one is kept for a while.')
export type Connection = z.infer<typeof Connection>

/** `Connection` as routes answer it. */
export const ConnectionAnswer = answerOf(Connection, ['connection_id', 'user_id', 'client_id', 'status'])
export type ConnectionAnswer = z.output<typeof ConnectionAnswer>
/** `Connection` as an inspector returns it: a field that is absent is not known. */
export type ConnectionInput = z.input<typeof ConnectionAnswer>

/** Reasons given by the library's registries; a host may use its own. */
export const LifecycleReason = z.enum(['heartbeat_lost', 'reconnected', 'new_instance'])

/** One step in the life of a connection. */
export const ConnectionEvent = z
  .object({
    connection_id: idField('connection_id'),
    event: z.enum(['connected', 'superseded', 'disconnected']).describe('What happened.'),
    at: Timestamp.describe('When it happened.'),
    reason: Reason.nullable().describe(
      `The reason, a low-cardinality name: ${LifecycleReason.options.map((word) => `\`${word}\``).join(', ')}, or the host's own.`,
    ),
  })
  .describe('One step in the life of a connection.')
export type ConnectionEvent = z.infer<typeof ConnectionEvent>

/** `ConnectionEvent` as routes answer it. */
export const ConnectionEventAnswer = answerOf(ConnectionEvent, ['connection_id', 'event'])
export type ConnectionEventAnswer = z.output<typeof ConnectionEventAnswer>
/** `ConnectionEvent` as an inspector returns it: a field that is absent is not known. */
export type ConnectionEventInput = z.input<typeof ConnectionEventAnswer>

/** One step in the life of any connection, with its client. */
export const ClientEvent = z
  .object({
    connection_id: idField('connection_id'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: idField('instance_id'),
    client_type: ClientType.describe('What kind of program the client is.'),
    node_id: z.string().nullable().describe('The node that holds the connection; `null` where there is only one.'),
    event: ConnectionEvent.shape.event,
    at: ConnectionEvent.shape.at,
    reason: ConnectionEvent.shape.reason,
  })
  .describe('One connect, disconnect or takeover of a client.')
export type ClientEvent = z.infer<typeof ClientEvent>

/** `ClientEvent` as routes answer it. */
export const ClientEventAnswer = answerOf(ClientEvent, ['connection_id', 'user_id', 'client_id', 'event'])
export type ClientEventAnswer = z.output<typeof ClientEventAnswer>
/** `ClientEvent` as an inspector returns it: a field that is absent is not known. */
export type ClientEventInput = z.input<typeof ClientEventAnswer>

/** Filters of `/connections/events`. */
export const ClientEventFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  node_id: filterBy('node_id'),
  event: ConnectionEvent.shape.event.optional().describe('Only events of this kind.'),
  reason: byReason.optional().describe('Only ends for this reason.'),
})
export type ClientEventFilter = z.infer<typeof ClientEventFilter>

/** An action as a client describes it. */
export const ActionDescriptor = z.object({
  name: idField('action'),
  description: z.string().nullable().describe("The client's description of the action; `null` without one."),
  parameters_schema: JsonRecord.nullable().describe('JSON Schema of its parameters; `null` where none is known.'),
})
export type ActionDescriptor = z.infer<typeof ActionDescriptor>

/** An action across the connections that offer it now. */
export const ActionObservation = ActionDescriptor.extend({
  observed_connections: z
    .int()
    .min(0)
    .nullable()
    .describe('Connections with status `connected` that offer it; `null` if they are not counted.'),
  observed_users: z.int().min(0).nullable().describe('Users with such connections; `null` if they are not counted.'),
  observed_client_types: z.array(ClientType).describe('Types of the clients that offer it.'),
}).describe(
  'An action across the connections that offer it now. The descriptions are those of the latest matching connection.',
)
export type ActionObservation = z.infer<typeof ActionObservation>

/** `ActionObservation` as routes answer it. */
export const ActionObservationAnswer = answerOf(ActionObservation, ['name'])
export type ActionObservationAnswer = z.output<typeof ActionObservationAnswer>
/** `ActionObservation` as an inspector returns it: a field that is absent is not known. */
export type ActionObservationInput = z.input<typeof ActionObservationAnswer>

/** Filters of `/connections`, all optional. */
export const ConnectionFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  client_type: ClientType.optional().describe('Only of clients of this type.'),
  status: ConnectionStatus.optional().describe('Only with this status.'),
  node_id: filterBy('node_id'),
  ended_reason: byReason.optional().describe('Only connections that ended for this reason.'),
  last_seen_before: lastAtOrBefore,
  ...SPAN_FILTERS,
})
export type ConnectionFilter = z.infer<typeof ConnectionFilter>

/** Query of `/connections`: the filters, with `silent_for_ms` instead of a time. */
export const ConnectionQuery = ConnectionFilter.omit({ last_seen_before: true }).extend({ silent_for_ms: SilentForMs })

/** Filters of `/actions`. */
export const ActionFilter = ConnectionFilter.pick({ user_id: true, client_type: true })
export type ActionFilter = z.infer<typeof ActionFilter>

/** Query of `/actions`: the filters, and how the names begin. */
export const ActionQuery = ActionFilter.extend({
  name_prefix: Id.optional().describe('Only actions whose name begins with this text; case-sensitive.'),
})
export type ActionQuery = z.infer<typeof ActionQuery>

/** Filters of `/connections/churn`. Combinations over the limit count for no node. */
export const ChurnFilter = ConnectionFilter.pick({ node_id: true, client_type: true })
export type ChurnFilter = z.infer<typeof ChurnFilter>

/** How many connections there are, every enum value present. */
export interface ConnectionCounts extends Indexed {
  /** Number of connections under the filter. */
  total: number
  /** Number of connections of each status. */
  by_status: Record<ConnectionStatus, number>
  /** Number of connections of each client type. */
  by_client_type: Record<ClientType, number> & { unknown?: number }
}

/** A client of a user: client ids are unique within one user only. */
export interface ClientOfUser {
  /** Id of the user. */
  user_id: string
  /** Id of the client; unique among the clients of the user. */
  client_id: string
}

/** Reads a connection registry. */
export interface RegistryInspector extends UserIndex {
  /** Lists retained connections under `filter`, one page at a time. */
  listConnections(filter: ConnectionFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<ConnectionInput>>
  /** Returns a retained connection, or `null` if it is unknown. */
  getConnection(connectionId: string, ctx: InspectionContext): Awaitable<ConnectionInput | null>
  /** Oldest first; `null` for a connection that is not known. Mirrored by the capability `registry_connection_history`. */
  listConnectionHistory?(
    connectionId: string,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<ConnectionEventInput> | null>
  /**
   * Ordered by the UTF-8 bytes of `name`; `cursor` is the last name of the previous page. `null` if no index covers the
   * filter; the view then samples.
   */
  listActions?(
    filter: ActionFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<(Page<ActionObservationInput> & Indexed) | null>
  /**
   * Returns the current instances of these clients (at most 500) in their order; `null` for a disconnected one. Without
   * this method each is looked up in the list.
   */
  currentInstances?(clients: readonly ClientOfUser[], ctx: InspectionContext): Awaitable<(string | null)[]>
  /** Exact counts under `filter`, or `null` if no index covers it; the view then samples. */
  countConnections?(filter: ConnectionFilter, ctx: InspectionContext): Awaitable<Partial<ConnectionCounts> | null>
  /**
   * Connects and ends of all retained connections, newest first. Advertised as the operation `connection_events`. They
   * can be derived from the connections: an event is known as long as its connection.
   */
  listConnectionEvents?(
    filter: ClientEventFilter,
    page: PageQuery,
    ctx: InspectionContext,
  ): Awaitable<Page<ClientEventInput>>
  /** Advertised as the operation `connection_churn`. */
  connectionChurn?(filter: ChurnFilter, ctx: InspectionContext): Awaitable<ConnectionChurnInput>
}

/** The input of `connect`. `actions` are names or descriptors. */
export const ConnectInput = inputObject({
  /** Id of the user. */
  user_id: Id,
  /** Id of the client; unique among the clients of the user. */
  client_id: Id,
  /** Id of the client instance: a new one per process or page load. */
  instance_id: Id,
  /** Type of the client. */
  client_type: ClientType,
  /** Actions that the client handles; at most 500. @default [] */
  actions: z
    .array(
      z.union([
        Id,
        inputObject({
          /** Name of the action. */
          name: Id,
          /** What the action does; at most 1024 characters. @default null */
          description: z.string().max(1_024).nullable().default(null),
          /** JSON Schema of the parameters. @default null */
          parameters_schema: JsonRecord.nullable().default(null),
        }),
      ]),
    )
    .max(500)
    .default([]),
  /** Metadata of the client: JSON, stored with the connection. @default {} */
  metadata: JsonRecord.default({}),
})
type GivenInput = z.input<typeof ConnectInput>
type GivenAction = NonNullable<GivenInput['actions']>[number]
/** Accepts readonly arrays. */
export interface ConnectInput extends Omit<GivenInput, 'actions'> {
  /** Actions that the client handles: names, or descriptors with a name; at most 500. @default [] */
  actions?: readonly GivenAction[] | undefined
}

/** One instance of one client of one user: what fencing compares. */
export const Instance = inputObject({
  /** Id of the user. */
  user_id: Id,
  /** Id of the client. */
  client_id: Id,
  /** Id of the client instance. */
  instance_id: Id,
})
export type Instance = z.infer<typeof Instance>

/**
 * Throws `invalid_input` if `client` lacks one of the fields that name it; a mistyped one is named. Other fields are
 * ignored: a host may pass its own record of a client.
 */
export function checkClient(client: ClientOfUser, required: readonly string[] = ['user_id', 'client_id']): void {
  const given: Readonly<Record<string, unknown>> = { ...client }
  const missing = required.find((name) => given[name] === undefined)
  if (missing === undefined) return
  const texts = Object.keys(given)
    .filter((name) => !(name in Instance.shape))
    .map((name) => unknownName('field', '', name, Object.keys(Instance.shape)))
  throw new Refusal('invalid_input', texts.find((text) => text.includes('Did you')) ?? `${missing}: is missing`)
}

/** Returns the instance that `given` names. @throws Refusal `invalid_input` */
export function readInstance(given: Instance): Instance {
  checkClient(given, Object.keys(Instance.shape))
  const { user_id, client_id, instance_id } = given
  return parseInput(Instance, { user_id, client_id, instance_id })
}

/**
 * The live registry that a host writes to. A new instance of the same (user, client) supersedes the old one, which is
 * fenced everywhere from then on. A connection without a heartbeat for 90 s (an option) is reported as `disconnected`
 * with reason `heartbeat_lost`.
 */
export interface ConnectionRegistry {
  /**
   * Records a new connection and returns it, with its `connection_id`. It supersedes the connection that the client had.
   *
   * @throws Refusal `invalid_input`, `payload_too_large` (a record over 64 KiB), `capacity_exceeded`.
   */
  connect(input: ConnectInput): Promise<Connection>
  /**
   * Records a heartbeat and, if given, replaces the client's `metadata`. Metadata that arrives late does not replace
   * newer metadata.
   *
   * @returns whether the connection is known and connected.
   * @throws Refusal `invalid_input`, `payload_too_large` (metadata over 60 KiB).
   */
  heartbeat(connectionId: string, metadata?: ConnectInput['metadata']): Promise<boolean>
  /** Whether it was connected until now. `reason` is a low-cardinality name; anything else is kept as `other`. */
  disconnect(connectionId: string, reason?: string): Promise<boolean>
  /** Returns whether this instance holds its client now, i.e. is connected and not superseded. */
  isCurrentInstance(instance: Instance): Promise<boolean>
  /** The instance that holds (user, client) now, or `null` when none is connected. */
  currentInstance(client: ClientOfUser): Promise<string | null>
}

/** What both registries of connections take. In a shared store a bound on all is that of one shard. */
export const ConnectionOptions = defineOptions({
  /** Ids of connections. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /** The node id of connections made here; omit it for a single process. @default null */
  nodeId: textOrNull().default(null),
  /** Silence after which a connection reads as `disconnected`, reason `heartbeat_lost`. @default 90000 */
  // A browser runs the timers of a hidden tab once a minute.
  heartbeatTimeoutMs: duration(90_000),
  /** How long a disconnected connection stays readable. @default 3600000 */
  retentionMs: duration(3_600_000),
  /** Connected connections; another is refused with `capacity_exceeded`. @default 1000000 */
  maxConnections: count(1_000_000),
  /** Connected connections of one user. @default a tenth of `maxConnections`, at least 2 */
  maxConnectionsPerUser: share('maxConnections'),
  /**
   * Maximum disconnected connections retained; beyond it the oldest of the user with the most is evicted. @default
   * 10000
   */
  maxDisconnected: count(10_000),
})
export interface ConnectionOptions extends Input<typeof ConnectionOptions> {}

/** Adds a connection to its user's observation: the client always, its offered actions while connected. */
export function foldConnection(
  part: FoldedPart,
  entry: Pick<ConnectionAnswer, 'client_id' | 'client_type' | 'status' | 'actions' | 'last_seen_at'> &
    Partial<Pick<ConnectionAnswer, 'actions_omitted'>>,
): void {
  const isConnected = entry.status === 'connected'
  part.observed_connections = (part.observed_connections ?? 0) + Number(isConnected)
  const { last_seen_at } = entry
  if (last_seen_at !== null && (!part.last_seen_at || part.last_seen_at < last_seen_at))
    part.last_seen_at = last_seen_at
  addNames(part, 'observed_client_ids', [entry.client_id])
  addNames(part, 'observed_client_types', isConnected ? [entry.client_type] : [])
  addNames(part, 'observed_action_types', isConnected ? entry.actions : [])
  // The actions of a client that are not listed may be any.
  if (isConnected && entry.actions_omitted !== 0 && entry.actions_omitted !== undefined) part.truncated = true
}

/** Connections, for the table of families. */
export const CONNECTION_FAMILY = {
  facility: 'connections',
  capability: 'registry',
  methods: { listConnections: true, getConnection: true },
  operations: { registry_connection_history: 'listConnectionHistory' },
  listed: { connection_churn: 'connectionChurn', connection_events: 'listConnectionEvents' },
  components: {
    ActionObservation: ActionObservationAnswer,
    ChurnMinute: ChurnMinuteAnswer,
    ClientEvent: ClientEventAnswer,
    ClientType,
    Connection: ConnectionAnswer,
    ConnectionChurn: ConnectionChurnAnswer,
    ConnectionEvent: ConnectionEventAnswer,
    ConnectionStatus,
  } as Family['components'],
  counted: { status: ConnectionStatus, client_type: orUnknown(ClientType) },
  users: foldUsers('listConnections', ConnectionAnswer, 'connection_id', foldConnection),
} as const satisfies Family<RegistryInspector>
