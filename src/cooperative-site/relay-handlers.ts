/** The handlers of the relay's routes. */
import * as z from 'zod'
import { ApplicationBody, CommandReplyAnswer, CommandReplyBody } from '../internal/contract/applications.js'
import { checkId } from '../internal/contract/ids.js'
import { type Ingest, SiteMessage, SiteMessageAnswer, siteStream } from '../internal/contract/ingest.js'
import { Invocation, InvokeBody } from '../internal/contract/invocations.js'
import type { Awaitable } from '../internal/contract/page.js'
import type { Principal } from '../internal/contract/sessions.js'
import { refuseGenericActionNames, Site, SiteDefinition, type SiteRegistry } from '../internal/contract/sites.js'
import { parseBody, readJson } from '../internal/http/body.js'
import { encode } from '../internal/http/encode.js'
import type { RoutedRequest } from '../internal/http/engine.js'
import { ProblemError } from '../internal/http/problem.js'
import { emptyReply, eventStreamReply, type HttpReply, jsonReply } from '../internal/http/respond.js'
import { Refusal } from '../internal/refusal.js'
import { type CheckActionDeps, findSession, requireInvoker } from './actions/check-action.js'
import { RESULT_BYTES } from './actions/failure.js'
import type { ActionGate } from './actions/gate.js'
import type { Applications } from './applications/applications.js'
import { type IngestSiteMessageDeps, ingestCooperativeSiteMessage } from './events/ingest.js'
import type { SessionStreams } from './sessions/streams.js'

/** The dependencies of the handlers. */
export interface Relay extends Omit<CheckActionDeps, 'sites'>, Omit<IngestSiteMessageDeps, 'sites' | 'ingest'> {
  /** With `get` only, sites cannot be declared over HTTP: those methods return 501. */
  sites: Pick<SiteRegistry, 'get'> & Partial<SiteRegistry>
  /** Bounded by the relay's deadline; publishing has its own time limit after that. */
  ingest: Ingest
  gate: ActionGate
  streams: SessionStreams
  /** `undefined` if applications can't connect here. */
  applications: Applications | undefined
  /** Runs a store call within the relay's deadline. */
  withinDeadline<T>(work: () => Awaitable<T>): Promise<T>
}

/** One authenticated request that matched. */
interface RelayRequest extends Omit<RoutedRequest<Principal>, 'search'> {
  request: Request
}

export type RelayHandler = (relay: Relay, matched: RelayRequest) => Promise<HttpReply>

export const postMessage: RelayHandler = async (relay, { request, who }) => {
  const message = parseBody(SiteMessage, await readJson(request))
  const answer = await ingestCooperativeSiteMessage(relay, { host: who, message })
  return jsonReply(202, encode(SiteMessageAnswer, answer))
}

async function ownSite({ sites, withinDeadline }: Relay, siteId: string, who: Principal): Promise<Site> {
  const site = await withinDeadline(() => sites.get(siteId))
  if (site?.owner !== who.user_id) throw new ProblemError('not_found')
  return site
}

export const getSite: RelayHandler = async (relay, { params, who }) => {
  const site = await ownSite(relay, params.site_id as string, who)
  return jsonReply(200, encode(Site, site))
}

export const putSite: RelayHandler = async ({ sites, withinDeadline }, { request, params, who }) => {
  const body = await readJson(request)
  refuseGenericActionNames(body)
  const definition = parseBody(SiteDefinition, body)
  const put = sites.put?.bind(sites)
  if (put === undefined) throw new ProblemError('operation_absent')
  const input = { ...definition, site_id: params.site_id as string, owner: who.user_id }
  const { created, site } = await withinDeadline(() => put(input))
  return jsonReply(created ? 201 : 200, encode(Site, site))
}

export const deleteSite: RelayHandler = async (relay, { params, who }) => {
  const { sites, withinDeadline } = relay
  const remove = sites.delete?.bind(sites)
  if (remove === undefined) throw new ProblemError('operation_absent')
  const { site_id } = await ownSite(relay, params.site_id as string, who)
  if (!(await withinDeadline(() => remove(site_id, { owner: who.user_id })))) throw new ProblemError('not_found')
  return emptyReply(204)
}

export const watchEvents: RelayHandler = async (relay, { request, params, who }) => {
  const { session, site } = await relay.withinDeadline(async () => {
    const found = await findSession(relay, params.session_id as string, who)
    return { session: found, site: await relay.sites.get(found.site_id) }
  })
  const viewable = session.state === 'active' || session.state === 'suspended'
  if (!viewable || site?.owner !== session.owner) throw new Refusal('session_not_active')
  const { session_id, site_id, owner } = session
  const topic = siteStream(owner, site_id)
  const place = relay.streams.reserve(who, session_id)
  try {
    await relay.withinDeadline(() => relay.streams.prepare(topic))
    const lastEventId = request.headers.get('last-event-id')
    return eventStreamReply(
      relay.streams.open({ viewer: who, session_id, site_id, topic, lastEventId, request, place }),
    )
  } catch (error) {
    place.release()
    throw error
  }
}

// Their shape is the gate's to judge, under its own code.
const ActionBody = InvokeBody.extend({ parameters: z.unknown().optional() })

function readIdempotencyKey(request: Request): { idempotency_key?: string } {
  const key = request.headers.get('idempotency-key')
  if (key === null) return {}
  const reason = checkId(key)
  if (reason === undefined) return { idempotency_key: key }
  throw new ProblemError('invalid_body', { errors: [{ in: 'header', name: 'Idempotency-Key', reason }] })
}

export const invokeAction: RelayHandler = async (relay, { request, params, who }) => {
  const session_id = params.session_id as string
  const action = params.action_name as string
  await relay.withinDeadline(async () => {
    const session = await findSession(relay, session_id, who)
    await requireInvoker(relay, { session, viewer: who, action })
  })
  const { parameters, timeout_ms, trace } = parseBody(ActionBody, await readJson(request))
  const invocation = await relay.gate.invoke({
    session_id,
    action,
    viewer: who,
    parameters,
    signal: request.signal,
    timeout_ms,
    trace,
    ...readIdempotencyKey(request),
  })
  return jsonReply(200, encode(Invocation, invocation))
}

function applicationsOf({ applications }: Relay): Applications {
  if (applications === undefined) throw new ProblemError('operation_absent')
  return applications
}

export const receiveCommands: RelayHandler = async (relay, { request, params, who }) => {
  const applications = applicationsOf(relay)
  const body = parseBody(ApplicationBody, await readJson(request))
  const client = { user_id: who.user_id, client_id: params.client_id as string, instance_id: body.instance_id }
  return eventStreamReply(await applications.open({ client, body, request }))
}

// A result and what surrounds it.
const REPLY_BYTES = RESULT_BYTES + 4_096

export const replyToCommand: RelayHandler = async (relay, { request, params, who }) => {
  const applications = applicationsOf(relay)
  const { instance_id, outcome } = parseBody(CommandReplyBody, await readJson(request, REPLY_BYTES))
  const client = { user_id: who.user_id, client_id: params.client_id as string, instance_id }
  const accepted = await applications.reply(client, params.command_id as string, outcome)
  return jsonReply(200, encode(CommandReplyAnswer, { accepted }))
}
