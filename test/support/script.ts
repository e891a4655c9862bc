import type { FakeModel, FakeReply } from './fake-model/fake-model.ts'

/** Sets what a fake model says from now on: for each role in order, the last reply again and again. */
export const say = (model: FakeModel, steps: Record<string, readonly FakeReply[]>): void => {
  const asked = new Map<string, number>()
  model.script(({ role }) => {
    const nth = asked.get(role) ?? 0
    asked.set(role, nth + 1)
    const replies = steps[role]
    return replies?.[Math.min(nth, replies.length - 1)]
  })
}

/** A reply that makes these calls. */
export const calling = (...calls: [name: string, args: object][]): FakeReply => ({
  tool_calls: calls.map(([name, args]) => ({ name, arguments: args })),
})
