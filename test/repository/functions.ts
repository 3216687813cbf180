/** The functions of `src` that are longer than a page, and why each is one piece. */
import ts from 'typescript'
import { readFiles } from './imports.js'

const LINES_MAX = 100

/** Every function over 100 lines, by file and name, with what its parts share. One that is split leaves the list. */
export const LONG_FUNCTIONS: Record<string, string> = {
  'cooperative-site/actions/gate.ts openGate': 'the options and the calls of each viewer',
  'cooperative-site/sessions/grants.ts createSessionGrants': 'the grants in the order of their last reads',
  'cooperative-site/sessions/stream.ts openSessionStream': 'the one taker that may be waiting, and the end',
  'diagnostics/router.ts createDiagnosticsRouter': 'the resolved options and the rows',
  'memory/connections/lifecycle.ts createConnectionLifecycle': 'the table and the queues that move together',
  'memory/delivery/attempts.ts createDeliveryAttempts': 'the moves of a command, which lead to each other',
  'memory/delivery/commands.ts createDeliveryStore': 'the indexes that one step of a command changes together',
  'memory/table/presence.ts createPresenceTable': 'the table and its three queues',
  'memory/table/table.ts createTable': 'the indexes that one record is in, which bench/ pays for',
  'plugs/follow/connections.ts createConnectionFollower': 'the connections, their clients and the timers over both',
  'plugs/playwright/follow.ts followBrowser': 'the windows, and the pages that each has',
  'redis/delivery/dispatch.ts createDispatch': 'the capacities that were written, and the two ways of an admission',
  'redis/delivery/facility.ts commandDispatcherOn': 'the parts of a node, which refer to each other',
  'redis/delivery/hand.ts createHand': 'the attempts in hand, their timers and their signals',
  'redis/delivery/loop.ts createDeliveryLoop': 'one timer and what is under way in each shard',
  'redis/delivery/mailboxes.ts createMailboxes': 'the turns of all mailboxes, and what has failed',
  'redis/delivery/run.ts createDeliveryRun': 'the runs that are being filled, and what each reply leads to',
}

/** The long functions that there are, named as the list names them. */
export function longFunctions(): string[] {
  return readFiles('src').flatMap(({ path, text }) => {
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
    const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line
    const found: string[] = []
    const visit = (node: ts.Node): void => {
      const isLong = ts.isFunctionLike(node) && lineOf(node.end) - lineOf(node.getStart()) >= LINES_MAX
      if (isLong) found.push(`${path} ${node.name?.getText() ?? '(nameless)'}`)
      ts.forEachChild(node, visit)
    }
    visit(source)
    return found
  })
}
