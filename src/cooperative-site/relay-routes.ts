/** The routes of the relay as data: methods, inputs and responses for hosts and viewers. */
import {
  ApplicationBody,
  ApplicationEndFrame,
  ApplicationReadyFrame,
  CancelFrame,
  CommandFrame,
  CommandReplyAnswer,
  CommandReplyBody,
} from '../internal/contract/applications.js'
import { EndFrame, GapFrame, ReadyFrame, SiteEvent } from '../internal/contract/event-bus.js'
import { SiteMessage, SiteMessageAnswer } from '../internal/contract/ingest.js'
import { Invocation, InvokeBody } from '../internal/contract/invocations.js'
import { DEFINITION_EXAMPLE, SITE_EXAMPLE, Site, SiteDefinition } from '../internal/contract/sites.js'
import type { Route } from '../internal/http/engine.js'
import {
  BODY_PROBLEMS,
  bodyOf,
  documentedResponse,
  type Operation,
  streamOf,
} from '../internal/http/operations-document.js'
import type { ProblemCode } from '../internal/http/problem.js'
import {
  deleteSite,
  getSite,
  invokeAction,
  postMessage,
  putSite,
  type RelayHandler,
  receiveCommands,
  replyToCommand,
  watchEvents,
} from './relay-handlers.js'

/** A path, its methods, and who may call them. */
interface RelayRoute extends Route<Operation<RelayHandler>> {
  who: 'host' | 'viewer'
}

const STREAM_EXAMPLE = `retry: 5000
id: 9f2c:40
event: ready
data: {"subscription_id":"s-1","session_id":"n-1","site_id":"notes","queue_limit":100,"replay":false,"heartbeat_ms":15000}

id: 9f2c:41
event: site_event
data: {"event_id":"m-41","name":"note_changed","site_id":"notes","seq":41,"published_at":"2026-01-15T09:41:27.000Z","data":{"id":7}}

`

const MESSAGE = {
  message_id: 'm-41',
  kind: 'event',
  stream: 'sites/notes/events',
  client_id: 'laptop',
  instance_id: 'laptop-7f3a',
  payload: { name: 'note_changed', data: { id: 7 } },
} as const

const POST_MESSAGE: Operation<RelayHandler> = {
  operationId: 'postMessage',
  summary: 'Publishes a message; an event of a site is forwarded to its viewers',
  body: bodyOf(SiteMessage, MESSAGE),
  answers: {
    202: documentedResponse(
      'The message is retained; `published` says whether viewers can receive it',
      SiteMessageAnswer,
      {
        accepted: true,
        duplicate: false,
        message_id: MESSAGE.message_id,
        stream: 'users/ada/sites/notes/events',
        published: true,
        not_published_reason: null,
      },
    ),
  },
  problems: [...BODY_PROBLEMS, 'stale_instance', 'share_exceeded'],
  handle: postMessage,
}

const GET_SITE: Operation<RelayHandler> = {
  operationId: 'getSite',
  summary: 'A site of the host',
  answers: { 200: documentedResponse('The site', Site, SITE_EXAMPLE) },
  problems: ['not_found'],
  handle: getSite,
}

const PUT_SITE: Operation<RelayHandler> = {
  operationId: 'putSite',
  summary: 'Declares a site, or replaces the whole declaration',
  body: bodyOf(SiteDefinition, DEFINITION_EXAMPLE),
  answers: {
    200: documentedResponse('The site, which was there', Site, SITE_EXAMPLE),
    201: documentedResponse('The site, which is new', Site, SITE_EXAMPLE),
  },
  problems: [...BODY_PROBLEMS, 'generic_action_name', 'owner_mismatch', 'share_exceeded', 'operation_absent'],
  handle: putSite,
}

const DELETE_SITE: Operation<RelayHandler> = {
  operationId: 'deleteSite',
  summary: 'Takes a site back',
  answers: { 204: { description: 'The site was deleted' } },
  problems: ['not_found', 'operation_absent'],
  handle: deleteSite,
}

const WATCH_EVENTS: Operation<RelayHandler> = {
  operationId: 'watchSessionEvents',
  summary: 'Streams the events of the site of a session, from now on',
  headers: {
    'Last-Event-ID': 'The last event id that the client received. Events that it missed since are reported as a `gap`.',
  },
  answers: {
    200: streamOf(
      'Frames until the session, the right or the relay ends. `id` is the position `<epoch>:<seq>`',
      { ready: ReadyFrame, site_event: SiteEvent, gap: GapFrame, end: EndFrame },
      STREAM_EXAMPLE,
    ),
  },
  problems: ['session_not_found', 'session_not_active', 'share_exceeded'],
  handle: watchEvents,
}

const INVOKE_ACTION: Operation<RelayHandler> = {
  operationId: 'invokeAction',
  summary: 'Invokes an action of the site of a session, once',
  headers: { 'Idempotency-Key': 'Unique id of this call: a repeated request with it returns the first outcome.' },
  body: bodyOf(InvokeBody, { parameters: { id: 7 }, timeout_ms: 10_000 }),
  answers: {
    200: documentedResponse("The application's response, including a failure", Invocation, {
      invocation_id: '1f0d6a52-8a0e-4a63-9f0a-3f2f6f1c7a11',
      action: 'archive_note',
      status: 'succeeded',
      result: { archived: true },
      error: null,
      started_at: '2026-01-15T09:41:28.000Z',
      finished_at: '2026-01-15T09:41:28.120Z',
    }),
  },
  problems: [
    ...BODY_PROBLEMS,
    'session_not_found',
    'session_not_active',
    'site_not_cooperative',
    'action_invocation_disabled',
    'action_not_allowed',
    'invalid_parameters',
    'reserved_parameter',
    'approval_denied',
    'approval_timeout',
    'connector_unavailable',
    'action_timeout',
    'application_disconnected',
    'idempotency_key_reused',
    'idempotency_in_progress',
    'share_exceeded',
  ],
  handle: invokeAction,
}

const COMMANDS_EXAMPLE = `retry: 1000
event: ready
data: {"connection_id":"c-1","user_id":"ada","client_id":"notes-app","instance_id":"notes-7f3a","heartbeat_ms":15000}

event: command
data: {"command_id":"k-1","action":"archive_note","payload":{"id":7},"attempt":1,"remaining_ms":30000}

event: cancel
data: {"command_id":"k-1"}

`

const RECEIVE_COMMANDS: Operation<RelayHandler> = {
  operationId: 'receiveCommands',
  summary: 'Connects an application, and streams the commands for it',
  body: bodyOf(ApplicationBody, { instance_id: 'notes-7f3a', actions: ['archive_note'] }),
  answers: {
    200: streamOf(
      'Frames until the application disconnects or the relay ends. The application is connected meanwhile',
      { ready: ApplicationReadyFrame, command: CommandFrame, cancel: CancelFrame, end: ApplicationEndFrame },
      COMMANDS_EXAMPLE,
    ),
  },
  problems: [...BODY_PROBLEMS, 'stale_instance', 'share_exceeded', 'operation_absent'],
  handle: receiveCommands,
}

const REPLY_TO_COMMAND: Operation<RelayHandler> = {
  operationId: 'replyToCommand',
  summary: 'Acknowledges a command or, with an outcome, replies to it',
  body: bodyOf(CommandReplyBody, { instance_id: 'notes-7f3a', outcome: { ok: true, result: { archived: true } } }),
  answers: {
    200: documentedResponse('Whether it counted', CommandReplyAnswer, { accepted: true }),
  },
  problems: [...BODY_PROBLEMS, 'operation_absent'],
  handle: replyToCommand,
}

/** Problems that every route can return. */
export const RELAY_PROBLEMS = [
  'unauthenticated',
  'forbidden',
  'method_not_allowed',
  'uri_too_long',
  'internal',
  'unavailable',
] as const satisfies readonly ProblemCode[]

/** All routes of the relay. */
export const RELAY_ROUTES: readonly RelayRoute[] = [
  { path: '/messages', who: 'host', methods: { POST: POST_MESSAGE } },
  { path: '/sites/{site_id}', who: 'host', methods: { GET: GET_SITE, PUT: PUT_SITE, DELETE: DELETE_SITE } },
  { path: '/clients/{client_id}/commands', who: 'host', methods: { POST: RECEIVE_COMMANDS } },
  { path: '/clients/{client_id}/commands/{command_id}', who: 'host', methods: { POST: REPLY_TO_COMMAND } },
  { path: '/sessions/{session_id}/events', who: 'viewer', methods: { GET: WATCH_EVENTS }, endless: true },
  { path: '/sessions/{session_id}/actions/{action_name}', who: 'viewer', methods: { POST: INVOKE_ACTION } },
]
