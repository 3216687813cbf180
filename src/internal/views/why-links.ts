/** The links between a dispatched command and its end, and what each proves. */
import * as z from 'zod'
import { Completeness, SourceName } from '../contract/capabilities.js'
import { idInput, Timestamp } from '../contract/ids.js'

/** The links of the chain, in the order in which a command makes them. */
export const WhyLinkName = z
  .enum(['admitted', 'client_known', 'connected', 'mailbox_attached', 'handed_over', 'acknowledged', 'ended'])
  .describe('One link between a dispatched command and its end.')
export type WhyLinkName = z.infer<typeof WhyLinkName>

type LinkWords = readonly [means: string, doesNotMean: string]

/** What each link proves and does not prove, by the value of `holds`. */
const LINK_WORDS: Record<
  WhyLinkName,
  Readonly<Record<'true' | 'false' | 'null', LinkWords> & { refused?: LinkWords }>
> = {
  admitted: {
    true: ['The relay accepted the command.', 'It does not mean that anything was sent to the client.'],
    false: [
      'The relay rejected the command, for the reason shown.',
      'It does not mean that a later dispatch is rejected.',
    ],
    null: [
      'No admission was read: the command was never dispatched, its record was removed or does not say, or the source did not answer.',
      'It does not mean that the command never existed.',
    ],
  },
  client_known: {
    true: [
      'The registry has a connection of this client, or an attempt was made for it.',
      'It does not mean that the client is connected.',
    ],
    false: [
      'The registry has no connection of this client.',
      'It does not mean that the client was never connected: old connections are removed. Check both ids for typing errors.',
    ],
    null: ['Whether the registry knows the client was not read.', 'It does not mean that the client is unknown.'],
  },
  connected: {
    true: [
      'The client is connected, or was while the command was open.',
      'It does not mean that it receives commands: it must attach to its mailbox.',
    ],
    false: [
      'The client is not connected.',
      'It does not mean that the command is lost: it is delivered if the client attaches before the deadline.',
    ],
    null: [
      'Whether the client is or was connected in time is unknown. A connection at a node that does not report is listed until it expires, even if the node stopped.',
      'It does not mean that it was disconnected.',
    ],
  },
  mailbox_attached: {
    true: [
      'A connection of the client is attached to its mailbox, or was when the attempt was made.',
      'It does not mean that this command is next: others may come first.',
    ],
    false: [
      'No connection of the client is attached to its mailbox.',
      'It does not mean that the client is disconnected: it may be connected without receiving commands.',
    ],
    null: ['Whether a mailbox was attached is unknown.', 'It does not mean that none was.'],
  },
  handed_over: {
    true: [
      'A connection accepted the command at least once.',
      'It does not mean that the client received it: what was sent can be lost on the way.',
    ],
    false: ['No connection has accepted the command.', 'It does not mean that no attempt was made: see its attempts.'],
    null: [
      'An attempt was made and its outcome is unknown, or no record was read.',
      'It does not mean that the client did not receive the command.',
    ],
  },
  acknowledged: {
    true: ['The client acknowledged the command.', 'It does not mean that the client ran it.'],
    false: [
      'The client has not acknowledged the command in time.',
      'It does not mean that the client did not receive or run it: an acknowledgement may have been lost, or did not count because it was late or sent with another instance id. The counters of /delivery/nodes show these as late and fenced.',
    ],
    refused: ['The client refused the command.', 'It does not mean that nothing happened before it refused.'],
    null: ['Whether the client acknowledged the command is unknown.', 'It does not mean that it did not.'],
  },
  ended: {
    true: [
      'An end of the command is recorded, with the reason shown.',
      'It does not mean that an effect happened, nor that none did.',
    ],
    false: ['No end of the command is recorded.', 'It does not mean that nothing has happened at the client.'],
    null: ['Whether the command has ended is unknown.', 'It does not mean that it is still open.'],
  },
}

const WhyEvidence = z
  .object({
    source: SourceName.describe('The source of the value.'),
    route: z.string().describe('The request that shows it, below the prefix.'),
    field: z.string().describe('The field in the answer of that request.'),
    value: z.union([z.string(), z.number(), z.boolean()]).nullable().describe('The value of that field.'),
    observed_at: Timestamp.describe('When it was read.'),
  })
  .describe('One value that a link is based on.')
export type WhyEvidence = z.infer<typeof WhyEvidence>

const WhyLink = z
  .object({
    link: WhyLinkName.describe('Which link.'),
    holds: z
      .boolean()
      .nullable()
      .describe('`true`: the evidence proves it. `false`: the evidence shows that it is broken. `null`: unknown.'),
    means: z.string().describe('What this proves.'),
    does_not_mean: z.string().describe('What this does not prove.'),
    evidence: z.array(WhyEvidence).describe('The values that this is based on; empty if nothing was read.'),
  })
  .describe('One link of the chain.')
export type WhyLink = z.infer<typeof WhyLink>

const NotLookedAt = z.object({
  link: WhyLinkName.describe('The link that is unknown because of this.'),
  source: SourceName.describe('The source that was not read for it.'),
  reason: z
    .enum(['absent', 'failed', 'cut_short', 'over'])
    .describe(
      '`absent`: this deployment has no such source, or it does not offer this. `failed`: it did not answer. `cut_short`: the bound of the request was reached first. `over`: the command was acknowledged or has ended, so the present state of its client proves nothing.',
    ),
})
export type NotLookedAt = z.infer<typeof NotLookedAt>

/** The response of `/delivery/why`. */
export const DeliveryWhy = z
  .object({
    user_id: idInput('user_id'),
    client_id: idInput('client_id'),
    command_id: idInput('command_id'),
    verdict: z
      .object({
        link: WhyLinkName.describe('The first link that does not hold.'),
        holds: z.literal(false).nullable().describe('`false`: it is broken. `null`: it is unknown.'),
      })
      .nullable()
      .describe('The first broken or unknown link; `null` if every link holds.'),
    links: z.array(WhyLink).describe('All links, in the order in which a command makes them.'),
    not_looked_at: z.array(NotLookedAt).describe('What was not read, and the reason.'),
    completeness: Completeness.describe('Whether the sources were read completely.'),
    observed_at: Timestamp.describe('When this answer was created.'),
  })
  .describe('Why a command has not arrived: a chain of links, and the first one that does not hold.')
export type DeliveryWhy = z.infer<typeof DeliveryWhy>

/** A link with its texts. */
export function whyLink(link: WhyLinkName, holds: boolean | null, evidence: WhyEvidence[], isRefused = false): WhyLink {
  const words = LINK_WORDS[link]
  const [means, does_not_mean] = (isRefused && words.refused) || words[`${holds}`]
  return { link, holds, means, does_not_mean, evidence }
}

/** The first link that does not hold. */
export function verdictOf(links: readonly WhyLink[]): DeliveryWhy['verdict'] {
  const first = links.find(({ holds }) => holds !== true)
  return first ? { link: first.link, holds: first.holds === false ? false : null } : null
}
