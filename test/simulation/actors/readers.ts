/** Operators: they ask every route at random moments, and read everything when nothing happens any more. */
import { judgeAnswer } from '../oracle/answers.js'
import type { Dice } from '../random.js'
import { type Answer, type Any, notesOf, type Reading, topicOf } from '../record.js'
import type { Stage } from '../stage.js'

export type Ask = (path: string) => Promise<Answer>

const statusPath = ({ user_id, client_id, command_id }: Any) =>
  `/delivery/status?${new URLSearchParams({ user_id, client_id, command_id })}`

const messagesPath = (stream: string) => `/history/messages?stream=${encodeURIComponent(stream)}&limit=1000`

function anyPath(stage: Stage, dice: Dice): string {
  const user = dice.pick(stage.history.userIds)
  const dispatches = stage.history.operations.filter(({ what }) => what === 'dispatch')
  if (dispatches.length > 0 && dice.chance(0.2)) return statusPath(dice.pick(dispatches))
  return dice.pick([
    '/connections/count',
    '/connections/count?status=connected',
    '/connections?limit=500',
    '/connections/churn',
    '/delivery/churn',
    '/delivery/summary',
    '/delivery/commands?limit=500',
    '/delivery/tenants',
    '/delivery/nodes',
    '/rpc/summary',
    '/rpc/pending?limit=500',
    '/deduplicator/summary',
    `/deduplicator/users/${user}`,
    '/contexts/count',
    '/browser-windows/count',
    '/users',
    `/users/${user}/summary`,
    '/actions',
    '/sessions?limit=500',
    '/sites',
    '/subscriptions?limit=500',
    '/history/streams',
    messagesPath(topicOf(user)),
    messagesPath(notesOf(user)),
    '/findings',
    '/sources',
    `/workers?user_id=${user}`,
  ])
}

export function actAsOperator(stage: Stage, endsAt: number, ask: Ask): void {
  const { world } = stage
  stage.act('operator', async (dice) => {
    while (world.now < endsAt) {
      await world.sleep(dice.between(100, 1_000))
      const answer = await ask(anyPath(stage, dice))
      world.count(`answers ${answer.status}`)
      world.say(() => `GET ${answer.path} ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`)
      judgeAnswer(answer, stage.history, stage.violate)
    }
  })
}

/** Reads everything that the last judgement needs. */
export async function readAll(stage: Stage, ask: Ask): Promise<Reading> {
  const { userIds, operations } = stage.history
  const [summary, tenants, rpc, nodes] = [
    await ask('/delivery/summary'),
    await ask('/delivery/tenants?limit=500'),
    await ask('/rpc/summary'),
    await ask('/delivery/nodes'),
  ]
  const messages = new Map<string, Answer>()
  for (const user of userIds)
    for (const stream of [topicOf(user), notesOf(user)]) messages.set(stream, await ask(messagesPath(stream)))
  const statuses = new Map<string, Answer>()
  for (const operation of operations) {
    if (operation.what !== 'dispatch') continue
    const { user_id, client_id, command_id } = operation
    const key = `${user_id} ${client_id} ${command_id}`
    if (!statuses.has(key)) statuses.set(key, await ask(statusPath(operation)))
  }
  return { summary, tenants, rpc, nodes, messages, statuses } as Reading
}
