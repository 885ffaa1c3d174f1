// Values of the types that openapi-typescript makes, as a caller writes them: what has a default may be left out.
import type { components, paths } from "./api";

type Schemas = components["schemas"];
type Submit = paths["/v1/jobs"]["post"];

export const job: Submit["requestBody"]["content"]["application/json"] = {
  topic: "pay.notify", id: "order-1", delay: "10m", url: "https://merchant.example/notify", body: { status: "PAID" },
  headers: { "x-merchant": "88231" }, retry: { delays: ["15s", 180], max: -1 }, tags: ["customer:42"],
};
export const replaced: Schemas["JobRequest"] = { topic: "t", id: "a", if_exists: "replace" };
export const policy: Schemas["PolicyRequest"] = { timeout: "5s", bury_on: [400], expect_body: "success" };
export const rescheduled: Schemas["RescheduleRequest"] = { at: "2026-11-23T09:00", time_zone: "Europe/Berlin" };
export const cancelled: Schemas["BulkRequest"] = { filter: { tag: "customer:42" }, dry_run: true };
export const moved: Schemas["BulkRescheduleRequest"] = { filter: { topic: "pay.notify" }, delay: "1h" };
export const reserve: Schemas["ReserveRequest"] = { max: 10 };
export const schedule: Schemas["ScheduleRequest"] = { cron: "0 8 * * MON-FRI", job: { topic: "reports" } };
export const key: Schemas["NewKeyRequest"] = { scopes: ["submit", "read"] };
export const tenant: NonNullable<Submit["parameters"]["header"]> = { "ringback-tenant": "~none" };

export function state(answer: Submit["responses"][201]["content"]["application/json"]): Schemas["JobState"] {
  return answer.last?.status === 503 ? "dead" : answer.state;
}
