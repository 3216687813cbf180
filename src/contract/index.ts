/** The public types of the library: what a host reads, writes or implements. Internal modules are imported directly. */

export type { CloseResult } from '../async/deadline.js'
export type { FieldFault, RecordFault } from './bad-record.js'
export {
  BrowserWindow,
  type BrowserWindowCounts,
  BrowserWindowFilter,
  type BrowserWindowRegistry,
  type BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
  WindowState,
  WindowStatus,
  WindowType,
} from './browser-windows.js'
export { Capabilities, Capability, Completeness, capabilitiesOf, SourceName } from './capabilities.js'
export type { CallMessage, ChannelMessages, CommandMessage } from './channels.js'
export {
  ActionDescriptor,
  ActionFilter,
  ActionObservation,
  ActionQuery,
  ChurnFilter,
  ChurnMinute,
  type ClientOfUser,
  ClientType,
  ConnectInput,
  Connection,
  ConnectionChurn,
  type ConnectionCounts,
  ConnectionEvent,
  ConnectionFilter,
  type ConnectionRegistry,
  ConnectionStatus,
  Instance,
  type RegistryInspector,
} from './connections.js'
export {
  Context,
  type ContextCounts,
  ContextFilter,
  type ContextRegistry,
  type ContextRegistryInspector,
  ContextStatus,
  Ownership,
  ReportContextInput,
  type WindowCounts,
  type WindowKey,
} from './contexts.js'
export {
  ClaimInput,
  type Deduplicator,
  type DeduplicatorInspector,
  DeduplicatorSummary,
  DeduplicatorUserSummary,
} from './deduplicator.js'
export {
  AcknowledgementState,
  AdmissionState,
  CommandFilter,
  CommandKey,
  CommandState,
  DeliveryChurn,
  type DeliveryChurnFilter,
  DeliveryCommand,
  type DeliveryInspector,
  DeliveryMailbox,
  DeliveryMinute,
  DeliveryNode,
  DeliveryStatus,
  DeliverySummary,
  DeliveryTenant,
  DeploymentMode,
  TerminalState,
} from './delivery.js'
export {
  AcknowledgeInput,
  CancelInput,
  type Command,
  type CommandDispatcher,
  DEADLINE_MAX_MS,
  type Deliver,
  DispatchInput,
  SettleInput,
  type Waiter,
} from './delivery-dispatch.js'
export {
  type BusItem,
  type EventGap,
  type EventRun,
  GapReason,
  type LastEvent,
  type LastEvents,
  type PublishedEvent,
  SiteEvent,
  type SiteEventBus,
  type StreamPosition,
  type SubscribeOptions,
  type Subscription,
  type TakeEvents,
} from './event-bus.js'
export type { Deployment, FamilyName, Inspected, Inspectors } from './families.js'
export {
  AppendInput,
  type HistoryInspector,
  HistoryMessage,
  HistoryStream,
  HistoryStreamFilter,
  Hydration,
  type MessageHistory,
  MessageKind,
  type Retained,
  type SpillStore,
} from './history.js'
export {
  createIngest,
  FirstAccepted,
  type Ingest,
  type IngestAnswer,
  type IngestOptions,
  NotPublishedReason,
  SiteMessage,
  SiteMessageAnswer,
  siteStream,
  userStream,
} from './ingest.js'
export {
  type ActionConnector,
  Invocation,
  InvocationError,
  SESSION_PARAMETER,
  SITE_PARAMETER,
  TIMEOUT_DEFAULT_MS,
  TIMEOUT_MAX_MS,
} from './invocations.js'
export type { Json, JsonObject } from './json.js'
export type { RouterLimits } from './limits.js'
export type { UserIds, UserIndex, UserPart, UserParts } from './observation.js'
export type {
  Awaitable,
  Examined,
  IdPageQuery,
  Indexed,
  InspectionContext,
  InspectionLimits,
  Page,
  PageQuery,
  Sample,
} from './page.js'
export {
  CallCounters,
  type CallOutcome,
  type CallSender,
  type InstanceCheck,
  type OpenCall,
  OpenCallInput,
  PendingCall,
  PendingCallFilter,
  type RpcCorrelator,
  type RpcInspector,
  RpcSummary,
} from './rpc.js'
export {
  Connector,
  OpenSessionInput,
  type Principal,
  Session,
  SessionFilter,
  type SessionInspector,
  type SessionPolicy,
  type SessionRegistry,
  SessionRight,
  SessionRow,
  SessionShare,
  SessionState,
} from './sessions.js'
export {
  ActionName,
  EventName,
  Site,
  SiteFilter,
  SiteInput,
  type SiteInspector,
  type SiteKey,
  SiteMode,
  type SiteRegistry,
  SiteRow,
} from './sites.js'
export {
  type StreamState,
  SubscriptionFilter,
  type SubscriptionInspector,
  type SubscriptionRegistry,
  SubscriptionRow,
  type ViewerStream,
} from './subscriptions.js'
