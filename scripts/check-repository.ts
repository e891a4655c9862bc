import { architecture } from './checks/architecture.ts'
import { deployment } from './checks/deployment.ts'
import { documentation } from './checks/pages.ts'
import { supplyChain } from './checks/supply-chain.ts'
import { limits } from './figures.ts'

/** What is wrong, and what finds the lines where it is. */
export type Check = readonly [problem: string, find: () => string[] | Promise<string[]>]

/** `tsx scripts/check-repository.ts`: what no compiler looks at. Prints each line that is wrong, and ends with 1. */
for (const [problem, find] of [...architecture, ...limits, ...documentation, ...supplyChain, ...deployment])
  for (const line of await find()) {
    console.error(`${problem}: ${line}`)
    process.exitCode = 1
  }
