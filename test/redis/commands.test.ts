import { describeCosts } from './request-costs.js'

describeCosts([
  [1, 700],
  [4, 700],
])
