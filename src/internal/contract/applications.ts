/** What an application in a process of its own and its relay exchange: the connection, its commands and their replies. */
import * as z from 'zod'
import { ClientType } from './connections.js'
import { Id, idField, idInput, Traceparent } from './ids.js'
import { InvocationError } from './invocations.js'
import { JsonRecord, JsonValue } from './json.js'

/** The body with which an application connects. */
export const ApplicationBody = z
  .strictObject({
    instance_id: idInput('instance_id'),
    client_type: ClientType.optional().describe('What kind of program the application is. Absent: `console`.'),
    actions: z.array(Id).max(500).optional().describe('Names of the actions that it handles. Absent: none.'),
    metadata: JsonRecord.optional().describe('Metadata of the application, shown with its connection. Absent: `{}`.'),
    reconnect: z
      .boolean()
      .optional()
      .describe(
        'Whether this instance was connected before. It is then refused if another instance took over; otherwise it takes over.',
      ),
  })
  .describe('An application that connects.')
export type ApplicationBody = z.infer<typeof ApplicationBody>

/** `ready`: the first frame of an application's stream. */
export const ApplicationReadyFrame = z
  .object({
    connection_id: idField('connection_id'),
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: idField('instance_id'),
    heartbeat_ms: z.int().min(1).describe('Longest time in milliseconds without a frame or comment.'),
  })
  .describe('`ready`: the application is connected, and its commands follow.')
export type ApplicationReadyFrame = z.infer<typeof ApplicationReadyFrame>

/** `command`: run this action and reply. */
export const CommandFrame = z
  .object({
    command_id: idField('command_id'),
    action: idField('action'),
    payload: JsonValue.describe('The payload as dispatched; `null` without one. For an action: its parameters.'),
    attempt: z.int().min(1).describe('1 for the first attempt: more means that it may have arrived before.'),
    remaining_ms: z.int().min(0).describe('Time in milliseconds until the command expires, when it was sent.'),
    trace: Traceparent.optional().describe('The W3C `traceparent` of the command. Absent: it has none.'),
  })
  .describe('`command`: a command for the application.')
export type CommandFrame = z.infer<typeof CommandFrame>

/** `cancel`: the result of this command is not needed any more. */
export const CancelFrame = z
  .object({ command_id: idField('command_id') })
  .describe('`cancel`: the command was cancelled or has expired.')
export type CancelFrame = z.infer<typeof CancelFrame>

/** Why the relay ends an application's stream. Only after `superseded` it must not connect again. */
export const ApplicationEndReason = z
  .enum(['shutdown', 'superseded', 'replaced', 'expired'])
  .describe(
    'Why it ends. `shutdown`: the relay stops. `superseded`: a newer instance of the client took over. `replaced`: the same instance opened another stream. `expired`: the registry no longer has the connection.',
  )
export type ApplicationEndReason = z.infer<typeof ApplicationEndReason>

/** `end`: the last frame. */
export const ApplicationEndFrame = z
  .object({ reason: ApplicationEndReason.describe('Why it ends.') })
  .describe('`end`: nothing follows.')
export type ApplicationEndFrame = z.infer<typeof ApplicationEndFrame>

/** An acknowledgement or, with an outcome, a reply. */
export const CommandReplyBody = z
  .strictObject({
    instance_id: idInput('instance_id'),
    outcome: z
      .discriminatedUnion('ok', [
        z.strictObject({
          ok: z.literal(true).describe('The handler returned.'),
          result: JsonValue.describe('What it returned.'),
        }),
        z.strictObject({
          ok: z.literal(false).describe('The action failed.'),
          error: InvocationError.describe('Why it failed.'),
        }),
      ])
      .optional()
      .describe('The outcome of the command. Absent: this only acknowledges it.'),
  })
  .describe('An acknowledgement or, with an outcome, a reply, which acknowledges too.')
export type CommandReplyBody = z.infer<typeof CommandReplyBody>

/** Whether the reply counted. */
export const CommandReplyAnswer = z
  .object({
    accepted: z
      .boolean()
      .describe('Whether it counted. Late, repeated and foreign ones don’t, and sending them again changes nothing.'),
  })
  .describe('Whether an acknowledgement or reply counted.')
export type CommandReplyAnswer = z.infer<typeof CommandReplyAnswer>
