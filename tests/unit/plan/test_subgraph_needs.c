/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a subgraph: backwards from the requested values, and for an If those of the chosen
 * branch. */
#include "plan/subgraph_needs.h"

#include <string.h>

#include "support/onnx_writer.h"
#include "support/test.h"

static const int64_t any_dims[1] = {-1};

/* y = c ? Neg(Abs(x)) : Neg(Exp(x)), each first function outside of the branches */
static const sp_graph *load(void)
{
    static const char *const branches[2] = {"then_branch", "else_branch"};
    static const char *const feeds[2] = {"absolute", "exponential"};
    writer graph = {0}, chooser = make_node("If", "c", "y");
    const sp_graph *loaded = NULL;
    add_input(&graph, "x", 1, any_dims, 1);
    add_input(&graph, "c", 9, NULL, 0);
    add_node(&graph, make_node("Abs", "x", feeds[0]));
    add_node(&graph, make_node("Exp", "x", feeds[1]));
    for (int i = 0; i < 2; i++) {
        writer branch = {0};
        add_node(&branch, make_node("Neg", feeds[i], "result"));
        add_output(&branch, "result");
        add_attribute_graph(&chooser, branches[i], &branch);
    }
    add_node(&graph, chooser);
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    return loaded;
}

/* Whether a node of that op is needed. */
static bool needs_op(const sp_subgraph_needs *needs, const sp_graph *graph, const char *op)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (needs->nodes[n] && strcmp(graph->nodes[n].op->name, op) == 0) return true;
    }
    return false;
}

static void check_needs(const bool *condition, sp_dtype dtype, bool needs_abs, bool needs_exp)
{
    const sp_graph *graph = load();
    sp_subgraph_needs needs;
    const sp_shape scalar = {0}, list = {.rank = 1, .dims = {3}};
    REQUIRE(graph != NULL);
    REQUIRE_OK(sp__subgraph_needs_init(&needs, graph->main));
    sp__subgraph_needs_know(&needs, graph->inputs[0].value, SP_F32, &list, NULL);
    sp__subgraph_needs_know(&needs, graph->inputs[1].value, dtype, &scalar, condition);
    sp__subgraph_needs_want(&needs, graph->outputs[0].value);
    sp__subgraph_needs_find(&needs, graph);
    CHECK(needs_op(&needs, graph, "If") && needs_op(&needs, graph, "Neg"));
    CHECK_EQ_INT(needs_op(&needs, graph, "Abs"), needs_abs);
    CHECK_EQ_INT(needs_op(&needs, graph, "Exp"), needs_exp);
    CHECK(needs.wanted[graph->inputs[1].value]);
    sp__subgraph_needs_deinit(&needs);
    sp__graph_destroy(graph);
}

TEST(what_a_known_condition_leaves_out_is_not_needed)
{
    check_needs(NULL, SP_BOOL, true, true);
    check_needs(&(bool){true}, SP_BOOL, true, false);
    check_needs(&(bool){false}, SP_BOOL, false, true);
}

/* The plan refuses it, whatever its value is. */
TEST(what_is_no_condition_chooses_nothing)
{
    check_needs(&(bool){true}, SP_U8, true, true);
}

TEST_MAIN
