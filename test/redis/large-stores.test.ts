/** What `commands.test.ts` and `expired-entries.test.ts` show, in larger worlds. */
import { describeExpired } from './expired-world.js'
import { describeCosts } from './request-costs.js'

describeCosts([[12, 6_000]])
describeExpired([
  [1, 4_500],
  [12, 1_500],
])
