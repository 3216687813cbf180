import { describeExpired } from './expired-world.js'

describeExpired([
  [1, 2_500],
  [4, 1_000],
])
